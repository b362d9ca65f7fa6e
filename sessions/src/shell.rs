//! The programs that a command runs, as far as its text shows: enough to see tests, commits and risks in a timeline. It is
//! not a shell, and decides nothing about what may run.

use crate::event::CommandLine;

/// Longest text that is read, in bytes. A longer one is a file that is written with a here-document.
const MAX_TEXT: usize = 64 * 1024;

/// Most programs of one command.
const MAX_PROGRAMS: usize = 256;

/// Shells within shells, as in `sh -c "sh -c …"`.
const MAX_SHELLS: usize = 4;

/// One program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Program {
    /// Without its folder: `git` for `/usr/bin/git`.
    pub name: String,
    pub arguments: Vec<String>,
    /// Whether it runs with other rights, through `sudo`.
    pub is_privileged: bool,
    /// The files that its output is redirected to.
    pub writes: Vec<String>,
}

impl Program {
    /// Returns the first argument that is not an option, such as the subcommand of git.
    pub fn subcommand(&self) -> Option<&str> {
        self.words().next()
    }

    /// Returns the arguments that are not options.
    pub fn words(&self) -> impl Iterator<Item = &str> {
        // git has options with a value before the subcommand.
        let has_value = |option: &str| self.name == "git" && matches!(option, "-C" | "-c");
        let mut skips = false;
        self.arguments.iter().map(String::as_str).filter(move |argument| {
            let is_value = std::mem::replace(&mut skips, has_value(argument));
            !is_value && !argument.starts_with('-')
        })
    }

    pub fn has_option(&self, short: char, long: &str) -> bool {
        self.arguments.iter().any(|argument| match argument.strip_prefix("--") {
            Some(name) => name.split('=').next() == Some(long),
            None => argument.strip_prefix('-').is_some_and(|letters| letters.contains(short)),
        })
    }

    /// Whether it runs tests.
    pub fn is_test(&self) -> bool {
        let first = self.subcommand();
        match self.name.as_str() {
            "pytest" | "py.test" | "unittest" | "nose2" | "jest" | "vitest" | "mocha" | "tox" | "nox" | "rspec"
            | "phpunit" | "ctest" | "ava" => true,
            "cargo" => matches!(first, Some("test" | "t" | "nextest")),
            "npm" | "yarn" | "pnpm" | "bun" => match first {
                Some("test" | "t") => true,
                Some("run") => self.words().nth(1).is_some_and(|script| script.starts_with("test")),
                Some(script) => self.name == "yarn" && script.starts_with("test"),
                None => false,
            },
            "go" | "dotnet" | "deno" | "mix" | "swift" | "bazel" | "rake" | "zig" | "flutter" => first == Some("test"),
            "make" | "just" | "mvn" | "mvnw" | "gradle" | "gradlew" | "sbt" => {
                self.words().any(|target| matches!(target, "test" | "tests" | "check" | "verify"))
            }
            _ => false,
        }
    }
}

/// Returns the programs of a command, in the order of its text.
pub fn programs(command: &CommandLine) -> Vec<Program> {
    let mut found = Vec::new();
    match command {
        CommandLine::Shell(text) => add_text(text, 0, &mut found),
        CommandLine::Arguments(arguments) => add_words(arguments.clone(), 0, &mut found),
    }
    found
}

fn add_text(text: &str, depth: usize, found: &mut Vec<Program>) {
    let mut lexer = Lexer::default();
    lexer.read(&text[..text.floor_char_boundary(MAX_TEXT)]);
    for words in lexer.commands {
        add_words(words, depth, found);
    }
}

fn add_words(words: Vec<String>, depth: usize, found: &mut Vec<Program>) {
    if found.len() >= MAX_PROGRAMS {
        return;
    }
    let (words, writes) = without_redirections(words);
    let mut rest = words.as_slice();
    let mut is_privileged = false;
    while let Some(first) = rest.first() {
        let name = base_name(first);
        let skipped = match (name, rest.get(1).map(String::as_str)) {
            _ if is_assignment(first) => 1,
            ("sudo" | "doas", _) => {
                is_privileged = true;
                1
            }
            (
                "env" | "time" | "nohup" | "nice" | "exec" | "command" | "npx" | "bunx" | "xargs" | "then" | "do"
                | "else" | "!",
                Some(_),
            ) => 1,
            ("timeout", Some(_))
            | ("uv" | "poetry" | "pipenv" | "pdm" | "rye", Some("run"))
            | ("bundle" | "pnpm" | "yarn", Some("exec"))
            | ("python" | "python3" | "py", Some("-m")) => 2,
            ("safe-run", Some("run")) => rest.iter().position(|word| word == "--").map_or(2, |at| at + 1),
            _ => break,
        };
        rest = rest.get(skipped..).unwrap_or_default();
        // Options of the wrapper, as in `nice -n 5` or `env -i`.
        while rest.len() > 1 && rest[0].starts_with('-') {
            rest = &rest[1..];
        }
    }
    let Some((first, arguments)) = rest.split_first() else { return };
    let name = base_name(first);
    if matches!(name, "sh" | "bash" | "zsh" | "dash") && depth < MAX_SHELLS {
        let option = arguments.iter().position(|word| word.starts_with('-') && word.ends_with('c'));
        if let Some(text) = option.and_then(|at| arguments.get(at + 1)) {
            return add_text(text, depth + 1, found);
        }
    }
    found.push(Program { name: name.to_owned(), arguments: arguments.to_vec(), is_privileged, writes });
}

fn base_name(word: &str) -> &str {
    word.rsplit(['/', '\\']).next().unwrap_or(word)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    })
}

/// The words that the lexer makes of redirections. No word of a command is equal to them.
const INTO: &str = "\u{0}>";
const FROM: &str = "\u{0}<";

fn without_redirections(words: Vec<String>) -> (Vec<String>, Vec<String>) {
    let (mut rest, mut writes) = (Vec::new(), Vec::new());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            INTO => writes.extend(words.next().filter(|file| file != "/dev/null" && file != FROM && file != INTO)),
            FROM => drop(words.next()),
            _ => rest.push(word),
        }
    }
    (rest, writes)
}

/// Splits a text at the operators of a shell. Words lose their quotes.
#[derive(Default)]
struct Lexer {
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    /// `None` between two words. Quotes alone are an empty word.
    word: Option<String>,
    /// The ends of the here-documents that begin after this line.
    documents: Vec<String>,
}

impl Lexer {
    fn read(&mut self, text: &str) {
        let mut rest = text.chars().peekable();
        while let Some(c) = rest.next() {
            match c {
                '\'' => {
                    let word = self.word.get_or_insert_default();
                    word.extend(rest.by_ref().take_while(|c| *c != '\''));
                }
                '"' => {
                    let word = self.word.get_or_insert_default();
                    while let Some(c) = rest.next().filter(|c| *c != '"') {
                        match c {
                            '\\' => word.extend(rest.next()),
                            c => word.push(c),
                        }
                    }
                }
                '\\' => match rest.next() {
                    Some('\n') | None => {}
                    Some(c) => self.word.get_or_insert_default().push(c),
                },
                '#' if self.word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
                '\n' => {
                    self.end_command();
                    for end in std::mem::take(&mut self.documents) {
                        skip_document(&mut rest, &end);
                    }
                }
                ';' | '|' | '(' | ')' | '`' => self.end_command(),
                '&' => {
                    // `&>` sends both streams to a file.
                    if rest.peek() != Some(&'>') {
                        self.end_command();
                    }
                }
                '>' => self.redirection(&mut rest),
                '<' => {
                    if rest.next_if_eq(&'<').is_some() && rest.peek() != Some(&'<') {
                        let _ = rest.next_if_eq(&'-');
                        self.documents.push(document_end(&mut rest));
                    } else {
                        let _ = rest.next_if_eq(&'<');
                        self.end_word();
                        self.words.push(FROM.to_owned());
                    }
                }
                c if c.is_whitespace() => self.end_word(),
                c => self.word.get_or_insert_default().push(c),
            }
        }
        self.end_command();
    }

    fn redirection(&mut self, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
        // The number of a stream belongs to the redirection.
        if self.word.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
            self.word = None;
        }
        self.end_word();
        let _ = rest.next_if(|c| matches!(c, '>' | '|'));
        if rest.next_if_eq(&'&').is_some() {
            while rest.next_if(|c| c.is_ascii_digit() || *c == '-').is_some() {}
        } else {
            self.words.push(INTO.to_owned());
        }
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take().map(|word| word.replace('\0', "")));
    }

    fn end_command(&mut self) {
        self.end_word();
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
    }
}

fn document_end(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    while rest.next_if(|c| matches!(c, ' ' | '\t')).is_some() {}
    let mut end = String::new();
    while let Some(c) = rest.next_if(|c| !c.is_whitespace() && !matches!(c, ';' | '|' | '&' | '>' | ')')) {
        if !matches!(c, '\'' | '"' | '\\') {
            end.push(c);
        }
    }
    end
}

fn skip_document(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, end: &str) {
    while rest.peek().is_some() {
        let line: String = rest.by_ref().take_while(|c| *c != '\n').collect();
        if line.trim_start_matches('\t') == end {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(text: &str) -> Vec<String> {
        programs(&CommandLine::Shell(text.to_owned())).into_iter().map(|program| program.name).collect()
    }

    #[test]
    fn the_programs_of_a_line_are_found() {
        for (text, expected) in [
            ("cd repo && FOO=1 python -m pytest -q 2>&1 | tail -5", &["cd", "pytest", "tail"][..]),
            ("bash -lc 'git add -A; git commit -m \"a; rm -rf /\"'", &["git", "git"]),
            ("cat > a.sh <<'EOF'\nrm -rf /\nEOF\nls", &["cat", "ls"]),
            ("timeout 60 uv run pytest", &["pytest"]),
            ("sudo -n rm x", &["rm"]),
            ("echo 'unterminated", &["echo"]),
            ("# comment only", &[]),
            ("", &[]),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn redirections_are_not_arguments() {
        let found = programs(&CommandLine::Shell("echo a >> b.txt 2>/dev/null < in &> all.log".to_owned()));
        assert_eq!(found[0].arguments, ["a"]);
        assert_eq!(found[0].writes, ["b.txt", "all.log"]);
    }

    #[test]
    fn tests_are_recognised() {
        let is_test = |text: &str| programs(&CommandLine::Shell(text.to_owned())).iter().any(Program::is_test);
        for text in [
            "pytest",
            "cargo test -p x",
            "npm run test:unit",
            "./gradlew check",
            "python3 -m unittest -v",
            "go test ./...",
        ] {
            assert!(is_test(text), "{text}");
        }
        for text in ["cargo build", "git commit -m 'pytest'", "npm install", "cat test", "grep pytest ."] {
            assert!(!is_test(text), "{text}");
        }
    }

    #[test]
    fn options_of_git_before_the_subcommand_are_skipped() {
        let program = &programs(&CommandLine::Shell("git -C /repo -c a.b=c push --force origin".to_owned()))[0];
        assert_eq!(program.subcommand(), Some("push"));
        assert!(program.has_option('f', "force"));
    }

    proptest! {
        #[test]
        fn any_text_ends(text in "(?s).{0,200}", arguments in proptest::collection::vec("[ -~]{0,8}", 0..6)) {
            programs(&CommandLine::Shell(text));
            programs(&CommandLine::Arguments(arguments));
        }
    }
}
