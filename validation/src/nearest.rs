//! "Did you mean": the known word that is closest to an unknown one.

/// Longest word that is compared, in bytes.
const MAX_WORD_BYTES: usize = 256;

/// Returns the known word that is closest to a misspelt one, within one edit plus one per five characters.
pub fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    // The distance takes the product of both lengths, and a word can come from any document.
    if word.len() > MAX_WORD_BYTES {
        return None;
    }
    let distance = |other: &str| strsim::damerau_levenshtein(&word.to_lowercase(), &other.to_lowercase());
    let (edits, near) = known.iter().map(|candidate| (distance(candidate), *candidate)).min()?;
    (edits <= 1 + near.len() / 5).then_some(near)
}
