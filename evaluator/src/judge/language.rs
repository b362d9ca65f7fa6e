//! The language of a text: by its script, or else by the share of function words, which make up a large part of every prose. A text
//! without enough of them has no known language: ids, code, lists of names, and short answers.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

/// Languages with Latin letters, each with frequent function words. Words that several of them have count for each.
const FUNCTION_WORDS: [(Language, &str); 9] = [
    (
        Language::English,
        "the and of to is you your are have has was with for this that will been be it if not can any on at from or as an we",
    ),
    (
        Language::German,
        "der die das und ist sie ihr ihre ihnen ich wir nicht ein eine einen zu mit auf für von den dem im wird wurde haben \
         hat sind bei oder wenn",
    ),
    (
        Language::French,
        "le la les et est vous votre vos je nous ne pas un une des du de à avec pour sur dans que qui sera été avez ou si au \
         ce cette",
    ),
    (
        Language::Spanish,
        "el la los las y es usted su sus yo no un una de del a con para por en que será ha sido si o al este esta se le",
    ),
    (
        Language::Portuguese,
        "o a os as e é você seu sua eu não um uma de do da com para por em que será foi se ou ao no na este esta dos das",
    ),
    (
        Language::Italian,
        "il lo la gli le e è lei suo sua io non un una di del della con per su in che sarà stato se o al nel questo questa i",
    ),
    (
        Language::Dutch,
        "de het een en is u uw ik wij niet van te met voor op in dat zal wordt heeft zijn bij of als deze dit om aan",
    ),
    (
        Language::Polish,
        "i w na z do nie jest się to że o jak po za od przez dla czy lub jeśli pan pani został została będzie są oraz",
    ),
    (
        Language::Swedish,
        "och att det är en ett på som för med av den du din ni er har inte jag vi om till kommer från eller när kan",
    ),
];

/// Fewest words of a text whose language is known.
const WORDS: usize = 6;

/// Fewest letters of a script that the earlier text does not have: more than an abbreviation or a sign.
const LETTERS: usize = 4;

/// Fewest function words.
const FOUND: usize = 3;

/// A language with few words in common with others, or the languages of one script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Language {
    English,
    German,
    French,
    Spanish,
    Portuguese,
    Italian,
    Dutch,
    Polish,
    Swedish,
    Greek,
    Cyrillic,
    Hebrew,
    Arabic,
    Devanagari,
    Thai,
    Korean,
    Japanese,
    Chinese,
}

impl Language {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Language::English => "English",
            Language::German => "German",
            Language::French => "French",
            Language::Spanish => "Spanish",
            Language::Portuguese => "Portuguese",
            Language::Italian => "Italian",
            Language::Dutch => "Dutch",
            Language::Polish => "Polish",
            Language::Swedish => "Swedish",
            Language::Greek => "Greek",
            Language::Cyrillic => "a language with Cyrillic letters",
            Language::Hebrew => "Hebrew",
            Language::Arabic => "a language with Arabic letters",
            Language::Devanagari => "a language with Devanagari letters",
            Language::Thai => "Thai",
            Language::Korean => "Korean",
            Language::Japanese => "Japanese",
            Language::Chinese => "Chinese",
        }
    }
}

/// The language of a text; `None` if it cannot be told.
pub(super) fn language(text: &str) -> Option<Language> {
    let prose = without_code(text);
    by_script(&prose).or_else(|| by_function_words(&prose))
}

/// The language of a text that is in another language than an earlier text for the same request. Two texts tell more than one:
/// a translation has function words that the earlier text lacks, and few of its words.
pub(super) fn other_language(old: &str, new: &str) -> Option<Language> {
    let [old, new] = [old, new].map(without_code);
    let (known, found) = (scripts(&old), scripts(&new));
    let has = |counts: &[(Language, usize)], script: Language| counts.iter().any(|(other, _)| *other == script);
    // Japanese mixes its own letters with Chinese ones.
    let japanese = Language::Japanese;
    let is_known = |script: Language| {
        has(&known, script) || script == Language::Chinese && (has(&known, japanese) || has(&found, japanese))
    };
    let other = found.iter().find(|(script, count)| *count >= LETTERS && !is_known(*script)).map(|(script, _)| *script);
    other.or_else(|| translated(&Words::new(&old), &Words::new(&new)))
}

/// The number of letters of each script, in the order of their first letters.
fn scripts(text: &str) -> Vec<(Language, usize)> {
    let mut counts: Vec<(Language, usize)> = Vec::new();
    for script in text.chars().filter(|c| c.is_alphabetic()).filter_map(script) {
        match counts.iter_mut().find(|(known, _)| *known == script) {
            Some((_, count)) => *count += 1,
            None => counts.push((script, 1)),
        }
    }
    counts
}

fn translated(old: &Words, new: &Words) -> Option<Language> {
    let (language, most, second) = new.most_frequent()?;
    let is_clear = most >= 2 && most > second && old.found[language] == 0;
    // The language of the earlier text is gone; or, where it has no function words, nearly all of its words are.
    let is_gone = match old.most_frequent() {
        Some((usual, _, _)) => new.found[usual] == 0,
        None => 4 * new.lower_case.intersection(&old.lower_case).count() <= new.lower_case.len(),
    };
    (is_clear && is_gone).then_some(FUNCTION_WORDS[language].0)
}

/// The words of a text by language.
struct Words {
    all: usize,
    /// The function words of each language, by the index in [`FUNCTION_WORDS`].
    found: [usize; FUNCTION_WORDS.len()],
    /// The words that are no names.
    lower_case: HashSet<String>,
}

impl Words {
    fn new(text: &str) -> Self {
        let words = text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        let mut counted = Self { all: 0, found: [0; FUNCTION_WORDS.len()], lower_case: HashSet::new() };
        for word in words.filter(|word| !word.is_empty() && word.chars().all(is_letter)) {
            counted.all += 1;
            let lower = word.to_lowercase();
            let languages = LANGUAGES.get(lower.as_str());
            languages.into_iter().flatten().for_each(|language| counted.found[*language] += 1);
            if lower == word {
                counted.lower_case.insert(lower);
            }
        }
        counted
    }

    /// The language with the most function words, their number, and that of the next language; `None` without any.
    fn most_frequent(&self) -> Option<(usize, usize, usize)> {
        let (best, most) = self.found.iter().copied().enumerate().max_by_key(|(_, count)| *count)?;
        let others = self.found.iter().enumerate().filter(|(index, _)| *index != best).map(|(_, count)| *count);
        (most > 0).then(|| (best, most, others.max().unwrap_or_default()))
    }
}

/// The words of a text that are no names: letters only, and in lower case unless they begin a sentence.
pub(super) fn common_words(text: &str) -> HashSet<String> {
    let mut words = HashSet::new();
    let mut begins = true;
    for token in text.split_whitespace() {
        let word = token.trim_matches(|c: char| !c.is_alphanumeric());
        let is_name = !begins && word.starts_with(char::is_uppercase);
        if !word.is_empty() && word.chars().all(is_letter) && !is_name {
            words.insert(word.to_lowercase());
        }
        begins = token.ends_with(['.', '!', '?', ':', '。']);
    }
    words
}

/// Whether a character can be part of a word. A word with a digit, an underscore or a sign inside is an id, a path or code.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() || c == '\'' || c == '’'
}

/// The text without what stands between backquotes, which is code.
fn without_code(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// For each function word, the languages that have it, as indexes of [`FUNCTION_WORDS`].
static LANGUAGES: LazyLock<HashMap<&str, Vec<usize>>> = LazyLock::new(|| {
    let mut languages: HashMap<&str, Vec<usize>> = HashMap::new();
    for (index, (_, words)) in FUNCTION_WORDS.iter().enumerate() {
        words.split_whitespace().for_each(|word| languages.entry(word).or_default().push(index));
    }
    languages
});

fn by_function_words(text: &str) -> Option<Language> {
    let words = Words::new(text);
    let (best, most, second) = words.most_frequent()?;
    // A tenth of the words, where prose has a third; and clear of all other languages.
    let is_clear = most >= FOUND && most * 10 >= words.all && most > second + second / 2;
    (words.all >= WORDS && is_clear).then_some(FUNCTION_WORDS[best].0)
}

fn by_script(text: &str) -> Option<Language> {
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let counts = scripts(text);
    let of = |of: Language| counts.iter().find(|(script, _)| *script == of).map_or(0, |(_, count)| *count);
    // Japanese mixes its own letters with Chinese ones.
    if of(Language::Japanese) > 0 && 2 * (of(Language::Japanese) + of(Language::Chinese)) > letters && letters >= WORDS
    {
        return Some(Language::Japanese);
    }
    let (script, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
    (2 * count > letters && letters >= WORDS).then_some(script)
}

/// The script of a letter; `None` for Latin and for rare scripts.
fn script(c: char) -> Option<Language> {
    let script = match u32::from(c) {
        0x0370..=0x03ff => Language::Greek,
        0x0400..=0x052f => Language::Cyrillic,
        0x0590..=0x05ff => Language::Hebrew,
        0x0600..=0x06ff | 0x0750..=0x077f => Language::Arabic,
        0x0900..=0x097f => Language::Devanagari,
        0x0e00..=0x0e7f => Language::Thai,
        0x1100..=0x11ff | 0xac00..=0xd7af => Language::Korean,
        0x3040..=0x30ff => Language::Japanese,
        0x3400..=0x4dbf | 0x4e00..=0x9fff => Language::Chinese,
        _ => return None,
    };
    Some(script)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> Option<&'static str> {
        language(text).map(Language::name)
    }

    #[test]
    fn prose_has_a_language() {
        for (text, expected) in [
            ("Your refund of $50 has been processed and will be on your card within 5 days.", "English"),
            ("Ihre Erstattung von 50 € wurde veranlasst und ist in 5 Tagen auf Ihrer Karte.", "German"),
            ("Votre remboursement de 50 € a été effectué et sera sur votre carte dans 5 jours.", "French"),
            ("Su reembolso de 50 € ha sido procesado y estará en su tarjeta en 5 días.", "Spanish"),
            ("O seu reembolso de 50 € foi processado e estará no seu cartão em 5 dias.", "Portuguese"),
            ("Il suo rimborso di 50 € è stato elaborato e sarà sulla sua carta in 5 giorni.", "Italian"),
            ("Uw terugbetaling van € 50 is verwerkt en staat binnen 5 dagen op uw rekening.", "Dutch"),
            ("Twój zwrot został zrealizowany i będzie na karcie w ciągu 5 dni, jeśli nie ma przerw.", "Polish"),
            ("Din återbetalning på 50 kr är klar och kommer att vara på ditt konto om 5 dagar.", "Swedish"),
            ("Ваш возврат средств обработан.", "a language with Cyrillic letters"),
            ("返金は処理されました。", "Japanese"),
            ("您的退款已经处理完毕。", "Chinese"),
        ] {
            assert_eq!(name(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn ids_code_and_short_answers_have_none() {
        for text in [
            "",
            "Done.",
            "OK",
            "W8665881, W9810810, W9034102",
            "refund_order(order_id=\"W12\", amount=50)",
            "`SELECT o.id, o.total FROM the_orders o WHERE o.user IN (1, 2)`",
            "```\nfor item in list of the items:\n    if it is not in that: return the item\n```",
            "Mei Patel, 445 Maple Drive, Suite 394, Fort Worth, TX 76165",
            "Zwei-Faktor",
            "/home/user/de/la/en/y/que.txt",
        ] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}
