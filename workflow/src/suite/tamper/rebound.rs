//! Lines that were added outside of the tests and change what a target test does: names that it uses, and what runs around it.
//!
//! Only what the test can see counts: the level of the file, and the classes or groups that the test is in.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

use super::blocks::{Block, Outside};
use super::scan::{Language, SEPARATOR, words};
use crate::suite::read::regex;

/// Finds such a line. `base` is the whole file at the base.
pub(super) fn rebound<'a>(
    language: Language,
    base: &str,
    targets: &[&Block<'_>],
    was: &[Outside<'_>],
    is: &[Outside<'a>],
) -> Option<&'a str> {
    let used: BTreeSet<&str> = targets.iter().flat_map(|it| it.lines.iter().flat_map(|line| words(line))).collect();
    let scope = Scope {
        language,
        names: targets.iter().map(|it| it.own_name()).collect(),
        groups: groups(language, base, targets),
        defined: base.lines().flat_map(|line| defined_names(language, line)).collect(),
        sources: sources(language, was),
        used,
    };
    let mut known: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for it in was {
        *known.entry((&*it.place.group, it.line.trim_end())).or_default() += 1;
    }
    for it in is {
        if let Some(count) = known.get_mut(&(&*it.place.group, it.line.trim_end())).filter(|count| **count > 0) {
            *count -= 1;
        } else if !it.place.is_text && !language.is_comment(it.line) && scope.is_changed_by(it) {
            return Some(it.line);
        }
    }
    None
}

/// What names are imported from.
type Sources<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// What the target tests see.
struct Scope<'a> {
    language: Language,
    names: BTreeSet<&'a str>,
    /// Their classes or groups, joined, and the base classes of these in the same file.
    groups: BTreeSet<String>,
    used: BTreeSet<&'a str>,
    /// The names that the file defined at the base.
    defined: BTreeSet<&'a str>,
    sources: Sources<'a>,
}

impl Scope<'_> {
    fn is_changed_by(&self, added: &Outside<'_>) -> bool {
        let is_named = |line| words(line).any(|word| self.names.contains(word));
        if let Some(import) = &added.place.import {
            let is_seen = self.sees(added) && !added.place.is_in_function;
            return (is_seen && self.is_moved_by(import))
                || (self.language == Language::Python && is_named(added.line));
        }
        match self.language {
            Language::Python => is_named(added.line) || self.is_changed_by_python(added),
            Language::JavaScript => self.is_changed_by_javascript(added),
            Language::Rust => self.is_used(&defined_names(Language::Rust, added.line)),
            Language::Go => {
                // Functions that run before the tests.
                static START: LazyLock<Regex> =
                    LazyLock::new(|| regex(r"^func\s+(?:TestMain|init)\s*\(|^var\s+_\s*=\s*func\b"));
                START.is_match(added.line) || self.is_used(&defined_names(Language::Go, added.line))
            }
        }
    }

    fn is_used(&self, names: &[&str]) -> bool {
        names.iter().any(|name| self.used.contains(name))
    }

    /// Reports whether the tests can see what a line defines.
    fn sees(&self, added: &Outside<'_>) -> bool {
        added.place.group.is_empty() || self.groups.contains(&*added.place.group)
    }

    fn is_changed_by_python(&self, added: &Outside<'_>) -> bool {
        static DEFINED: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)"));
        static HOOK: LazyLock<Regex> = LazyLock::new(|| {
            regex(
                r"^(?:setUp|tearDown|setUpClass|tearDownClass|asyncSetUp|asyncTearDown|setup|teardown|setup_method|teardown_method|setup_class|teardown_class|run|debug|failureException|addCleanup|doCleanups|_call\w+|__\w+__)$",
            )
        });
        static FILE_HOOK: LazyLock<Regex> = LazyLock::new(|| {
            regex(
                r"^(?:setUpModule|tearDownModule|setup_module|teardown_module|setup_function|teardown_function|load_tests|pytest_\w+|pytestmark)$",
            )
        });
        static EVERYWHERE: LazyLock<Regex> =
            LazyLock::new(|| regex(r"\bsys\.modules\b|\bglobals\(\)|\b__dict__\b|\bbuiltins\b|\bsettrace\b"));
        static PATCH: LazyLock<Regex> = LazyLock::new(|| regex(r"\bpatch(?:\.\w+)*\(|\bsetattr\(|\bvars\("));
        static BOUND: LazyLock<Regex> = LazyLock::new(|| {
            regex(r"\bfor\s+([\w\s,]+?)\s+in\b|\bas\s+(\w+)|\bdel\s+([\w., ]+)|\bglobal\s+([\w, ]+)|(\w+)\s*:=")
        });
        static ATTRIBUTE: LazyLock<Regex> =
            LazyLock::new(|| regex(r"\b((?:\w+\.)+)(\w+)\s*(?:[-+*/|&^%@]|//|\*\*|>>|<<)?=(?:[^=]|$)"));
        let (line, place) = (added.line, &added.place);
        let is_in_class = !place.group.is_empty();
        let sees = self.sees(added);
        if EVERYWHERE.is_match(line)
            || ATTRIBUTE.captures_iter(line).any(|it| {
                let is_own = it[1].starts_with("self.") || it[1].starts_with("cls.");
                self.used.contains(&it[2]) && (!is_own || (sees && is_in_class))
            })
        {
            return true;
        }
        if place.is_in_function && line.trim_start().starts_with("global ") {
            return words(line).any(|word| self.used.contains(word));
        }
        if !sees {
            return false;
        }
        // A function of the file runs only if another line calls it.
        let runs = !place.is_in_function || is_in_class;
        if place.decorates_class || line.contains("autouse") || (runs && PATCH.is_match(line)) {
            return true;
        }
        if place.is_in_function {
            return false;
        }
        let mut names = assigned_names(line);
        names.extend(DEFINED.captures(line).and_then(|it| it.get(1)).map(|it| it.as_str()));
        let bound = BOUND.captures_iter(line).flat_map(|it| it.iter().skip(1).flatten().collect::<Vec<_>>());
        names.extend(bound.flat_map(|it| words(it.as_str())));
        let hook = if is_in_class { &HOOK } else { &FILE_HOOK };
        self.is_used(&names) || names.iter().any(|name| hook.is_match(name))
    }

    fn is_changed_by_javascript(&self, added: &Outside<'_>) -> bool {
        static MODULES: LazyLock<Regex> =
            LazyLock::new(|| regex(r"\b(?:jest|vi|mock)\.(?:mock|doMock|setMock|unstable_mockModule|module)\("));
        static HOOK: LazyLock<Regex> = LazyLock::new(|| {
            regex(
                r"^\s*(?:\w+\.)?(?:beforeEach|afterEach|beforeAll|afterAll|before|after|setup|teardown|suiteSetup|suiteTeardown)\s*\(",
            )
        });
        static SPY: LazyLock<Regex> = LazyLock::new(|| regex(r"\b(?:spyOn|stub|replaceProperty|defineProperty)\("));
        static ATTRIBUTE: LazyLock<Regex> = LazyLock::new(|| regex(r"(\w+)\.(\w+)\s*=(?:[^=>]|$)"));
        static ASSIGNED: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*([\w$]+)\s*=(?:[^=>]|$)"));
        let (line, place) = (added.line, &added.place);
        let is_attribute = ATTRIBUTE.captures_iter(line).any(|it| self.used.contains(&it[2]) && &it[1] != "this");
        if MODULES.is_match(line) || is_attribute {
            return true;
        }
        if !self.sees(added) {
            return false;
        }
        let is_assigned = ASSIGNED.captures(line).is_some_and(|it| self.used.contains(&it[1]));
        let is_hook = !place.is_in_function && HOOK.is_match(line);
        let is_defined = !place.is_in_function && self.is_used(&defined_names(Language::JavaScript, line));
        is_assigned || is_hook || is_defined || SPY.is_match(line)
    }

    /// Reports whether an import gives another meaning to a name that the tests use.
    fn is_moved_by(&self, import: &str) -> bool {
        if self.language == Language::Rust {
            // It hides what the file defines, which tests see by `use super::*`.
            static SUPER: LazyLock<Regex> =
                LazyLock::new(|| regex(r"^\s*(?:pub\s+)?use\s+super::(?:\w+|\{[\w,\s]*\});?\s*$"));
            let names: Vec<&str> = words(import).collect();
            return !SUPER.is_match(import)
                && names.iter().any(|name| self.used.contains(name) && self.defined.contains(name));
        }
        imported(self.language, import).iter().any(|(name, source)| {
            let known = self.sources.get(name);
            let is_other = known.map_or_else(|| self.defined.contains(name), |known| !known.contains(source));
            // Global in jest and vitest, and never from a file of the repository.
            let is_global = source.starts_with('.') && ["expect", "assert", "test", "it", "jest", "vi"].contains(name);
            self.used.contains(name) && (is_other || (is_global && known.is_none()))
        })
    }
}

/// Returns the classes or groups that targets are in, joined, with those around them and the base classes in the same file.
fn groups(language: Language, base: &str, targets: &[&Block<'_>]) -> BTreeSet<String> {
    static BASES: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^\s*class\s+(\w+)\s*\(([^)]*)\)"));
    let mut groups = BTreeSet::new();
    for target in targets {
        let group = target.group();
        groups.extend(group.match_indices(SEPARATOR).map(|(at, _)| group[..at].to_owned()));
        groups.insert(group.to_owned());
    }
    if language == Language::Python {
        let classes: Vec<(String, Vec<&str>)> = BASES
            .captures_iter(base)
            .filter_map(|it| Some((it[1].to_owned(), words(it.get(2)?.as_str()).collect())))
            .collect();
        loop {
            let is_group = |name: &str| groups.iter().any(|group| group.rsplit(SEPARATOR).next() == Some(name));
            let found: BTreeSet<String> = classes
                .iter()
                .filter(|(name, _)| is_group(name))
                .flat_map(|(_, bases)| bases.iter().map(|it| (*it).to_owned()))
                .collect();
            let known = groups.len();
            groups.extend(found);
            if groups.len() == known {
                break;
            }
        }
    }
    groups
}

/// Returns the names that a line of Python assigns: those before each `=`.
fn assigned_names(line: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for statement in line.split(';') {
        let mut rest = statement;
        while let Some(at) = rest.find('=') {
            let (before, after) = (&rest[..at], &rest[at + 1..]);
            if after.starts_with('=')
                || before.ends_with(['!', '<', '>', ':'])
                || before.contains(['(', '#', '"', '\''])
            {
                break;
            }
            // A part before a point is an object.
            let targets = before.split([' ', ',', ':', '\t']).map(|it| it.split('[').next().unwrap_or(it));
            names.extend(targets.filter(|it| !it.contains('.')).flat_map(words));
            rest = after;
        }
    }
    names
}

/// Returns the names that a line defines, wherever it is.
fn defined_names(language: Language, line: &str) -> Vec<&str> {
    static DEFINED: LazyLock<[Regex; 4]> = LazyLock::new(|| {
        [
            regex(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)|^(\w+)\s*(?::[^=]+)?=[^=]"),
            regex(
                r"^\s*(?:pub(?:\([^)]*\))?\s+)?(?:const\s+|async\s+|unsafe\s+)*(?:fn|struct|enum|mod|static|const|type|trait|macro_rules!)\s+(\w+)|^\s*(?:pub\s+)?use\s.*\bas\s+(\w+)",
            ),
            regex(r"^(?:func|var|const|type)\s+(?:\([^)]*\)\s*)?(\w+)|^(\w+)\s*=[^=]"),
            regex(
                r"^\s*(?:export\s+)?(?:async\s+)?(?:function\*?|class|const|let|var)\s+(?:(\w+)|\{([^}]*)\}|\[([^\]]*)\])",
            ),
        ]
    });
    static METHOD: LazyLock<Regex> =
        LazyLock::new(|| regex(r"\(\s*(?:&\s*(?:'\w+\s+)?)?(?:mut\s+)?self\b|->\s*Self\b"));
    // A method does not replace a function.
    if language == Language::Rust && METHOD.is_match(line.split("//").next().unwrap_or(line)) {
        return Vec::new();
    }
    let groups = DEFINED[language as usize].captures(line);
    let found: Vec<&str> =
        groups.iter().flat_map(|groups| groups.iter().skip(1).flatten().map(|name| name.as_str())).collect();
    found.into_iter().flat_map(words).collect()
}

fn sources<'a>(language: Language, lines: &'a [Outside<'_>]) -> Sources<'a> {
    let mut sources = Sources::new();
    for (name, source) in lines.iter().filter_map(|it| it.place.import.as_deref()).flat_map(|it| imported(language, it))
    {
        sources.entry(name).or_default().insert(source);
    }
    sources
}

/// Returns the names that an import defines, each with what it is imported from.
fn imported(language: Language, import: &str) -> Vec<(&str, &str)> {
    static FROM: LazyLock<Regex> = LazyLock::new(|| regex(r"^\s*from\s+(\S+)\s+import\b(.*)"));
    static QUOTED: LazyLock<Regex> = LazyLock::new(|| regex(r#"^(.*)["']([^"']+)["'][^"']*$"#));
    let groups = match language {
        Language::Python => FROM.captures(import),
        Language::JavaScript => QUOTED.captures(import),
        Language::Rust | Language::Go => return Vec::new(),
    };
    let text = |at: usize| groups.as_ref().and_then(|it| it.get(at)).map(|it| it.as_str());
    match (language, text(1), text(2)) {
        (Language::Python, Some(source), Some(names)) => {
            let names = names.split('#').next().unwrap_or(names).split(',');
            let local = |name: &'_ str| name.find(" as ").map_or(0, |at| at + 4);
            names.filter_map(|name| Some((words(&name[local(name)..]).next()?, source))).collect()
        }
        (Language::Python, ..) => {
            let modules = import.trim_start().strip_prefix("import").unwrap_or("");
            let modules = modules.split('#').next().unwrap_or(modules).split(',');
            // `import a.b` defines `a`.
            let both = modules.filter_map(|module| match module.split_once(" as ") {
                Some((source, name)) => Some((words(name).next()?, source.trim())),
                None => words(module).next().map(|name| (name, name)),
            });
            both.collect()
        }
        (_, Some(names), Some(source)) => words(names).map(|name| (name, source)).collect(),
        _ => Vec::new(),
    }
}
