//! Edits of test files: which weaken a test, and which do not.

use proptest::prelude::*;

use super::*;

const PYTHON: &str = r#"import unittest
from calc import add

LIMIT = 10


def helper():
    return 1


class TestAdd(unittest.TestCase):
    def setUp(self):
        self.base = 1

    # About the test.
    @unittest.expectedFailure
    @parametrize(
        "a", [1, 2],
    )
    def test_add(self, a=0):
        text = """
def test_add():
"""
        if a:
# unusual comment
            self.assertEqual(add(1, 2), \
3, text)
        self.assertTrue(helper())

    def test_other(self):
        self.assertEqual(add(1, 1), 2)
"#;

const RUST: &str = r##"pub fn add(a: i32, b: i32) -> i32 {
    a - b
}

#[cfg(test)]
mod tests {
    use super::*;

    fn helper() -> i32 { 1 }

    /// Adds.
    #[test]
    #[should_panic(
        expected = "}"
    )]
    fn adds() {
        let text = r#" } " { "#;
        let lifetime: &'static str = "{"; // }
        let c = '{'; /* } /* { */ */
        assert_eq!(add(1, 2), 3);
    }

    #[test]
    fn others() { assert_eq!(helper(), 1); }
}
"##;

const JAVASCRIPT: &str = r#"const { add } = require('./calc');

function helper() { return 1; }

describe('math', () => {
  beforeEach(() => {});

  test('adds', () => {
    const text = `} ${1} {`;
    expect('a}b'.replace(/[}"]/, text)).toBe(text);
    expect(add(1, 2)).toBe(3);
  });

  test.each([
    [1, 2],
  ])('each %i', (a) => {
    expect(a).toBe(a);
  });

  it('works: too', () => { helper(); });
});
"#;

const GO: &str = r#"package calc

import "testing"

var limit = 10

func TestAdd(t *testing.T) {
	raw := `}
"`
	t.Run("one", func(t *testing.T) {
		if Add(1, 2) != 3 { // }
			t.Fatal(raw, '}', "\"}")
		}
	})
}

func TestOther(t *testing.T) {}
"#;

/// Path, text, id, first and last line of the test (from 0), and another test to add before a line or at the end.
const CASES: [(&str, &str, &str, [usize; 2], &str); 5] = [
    (
        "tests/test_calc.py",
        PYTHON,
        "tests/test_calc.py::TestAdd::test_add",
        [15, 27],
        "    def test_new(self):\n        self.assertEqual(add(2, 2), 4)\n",
    ),
    (
        "src/lib.rs",
        RUST,
        "tests::adds",
        [11, 20],
        "    #[test]\n    fn new_one() {\n        assert_eq!(add(2, 2), 4);\n    }\n",
    ),
    (
        "calc.test.js",
        JAVASCRIPT,
        "calc.test.js › math › adds",
        [7, 11],
        "  test('new', () => {\n    expect(add(2, 2)).toBe(4);\n  });\n",
    ),
    ("calc.test.js", JAVASCRIPT, "each %i", [13, 17], "  test('new', () => {\n    expect(add(2, 2)).toBe(4);\n  });\n"),
    (
        "calc_test.go",
        GO,
        "example.com/calc.TestAdd/one",
        [6, 14],
        "func TestNew(t *testing.T) {\n\tif Add(2, 2) != 4 {\n\t\tt.Fatal()\n\t}\n}\n",
    ),
];

/// Lines that take a test its meaning where it can see them, by the number of the case.
const NEUTERING: [(usize, &str); 28] = [
    (0, "    def assertEqual(self, *a): pass\n"),
    (0, "    def setUp(self):\n        self.assertEqual = print\n"),
    (0, "    def other(self):\n        self.assertEqual = print\n"),
    (0, "    def tearDown(self):\n        pass\n"),
    (0, "    @classmethod\n    def setUpClass(cls):\n        pass\n"),
    (0, "    assertEqual = print\n"),
    (0, "    x = assertEqual = print\n"),
    (0, "    @pytest.fixture(autouse=True)\n    def patched(self):\n        yield\n"),
    (0, "    def __getattribute__(self, name):\n        return print\n"),
    (0, "    for assertEqual in [print]:\n        pass\n"),
    (0, "    def run(self, result=None):\n        pass\n"),
    (0, "    from fake import add\n"),
    (1, "    fn add(_: i32, _: i32) -> i32 { 3 } // self\n"),
    (1, "    macro_rules! assert_eq { ($($x:tt)*) => {} }\n"),
    (1, "    use crate::fake::add;\n"),
    (1, "    use super::{\n        fake::add,\n    };\n"),
    (2, "  beforeEach(() => {});\n"),
    (2, "  afterAll(() => {\n  });\n"),
    (2, "  const expect = fake;\n"),
    (2, "  const { add } = require('./fake');\n"),
    (2, "  function expect() {}\n"),
    (3, "  test.beforeEach(() => {});\n"),
    (3, "  const {\n    expect,\n  } = require('./fake');\n"),
    (4, "func TestMain(m *testing.M) {\n}\n"),
    (4, "func init() {\n}\n"),
    (4, "var _ = func() int { return 1 }()\n"),
    (4, "func Add(a, b int) int { return 3 }\n"),
    (4, "const Add = 1\n"),
];

/// Puts lines at the start of the class or group, before the test, or after it.
fn with_lines(case: usize, new: &str, place: usize) -> String {
    let (_, text, _, [first, last], _) = CASES[case];
    let lines: Vec<&str> = text.lines().collect();
    let start = ["class ", "mod tests", "describe(", "import \"testing\""];
    let start = lines.iter().position(|line| start.iter().any(|it| line.starts_with(it))).unwrap();
    // Before the block and the comment above it, or after it.
    let above = if case > 1 { first } else { first - 1 };
    let at = [start + 1, above, last + 1][place];
    format!("{}\n\n{new}\n{}\n", lines[..at].join("\n"), lines[at..].join("\n"))
}

fn why(case: usize, now: &str) -> Option<String> {
    let (path, base, id, ..) = CASES[case];
    tampered(path, base.as_bytes(), Some(now.as_bytes()), &Target::test(id))
}

#[test]
fn files_have_tests_by_their_path_or_by_what_they_define() {
    for (path, text) in [("src/lib.rs", RUST), ("calc.py", PYTHON), ("src/test/Sum.java", ""), ("spec/a_spec.rb", "")] {
        assert!(has_tests(path, text.as_bytes()), "{path}");
    }
    for (path, text) in [("src/lib.rs", "fn add() {}\n"), ("src/main/Sum.java", "class Sum { }"), ("latest.rb", "")] {
        assert!(!has_tests(path, text.as_bytes()), "{path}");
    }
    // All tests of such a file count.
    let whole = Target::File { path: "tests/a.py".into() };
    let edited = PYTHON.replace("add(1, 1), 2", "add(1, 1), 3");
    assert!(tampered("tests/a.py", PYTHON.as_bytes(), Some(edited.as_bytes()), &whole).is_some());
    let added = format!("{PYTHON}\n    def test_more(self):\n        pass\n");
    assert_eq!(tampered("tests/a.py", PYTHON.as_bytes(), Some(added.as_bytes()), &whole), None);
}

#[test]
fn a_file_that_is_gone_and_tests_that_are_gone_are_found() {
    let target = Target::test("test_add");
    let gone = tampered("test_calc.py", PYTHON.as_bytes(), None, &target);
    assert_eq!(gone.as_deref(), Some("`test_calc.py` was deleted or renamed"));
    for (from, to, message) in [
        ("def test_add(", "def test_sum(", "removed, renamed or commented out"),
        ("def test_add(", "def _test_add(", "removed, renamed or commented out"),
        (
            "        self.assertTrue(helper())\n",
            "        self.assertTrue(helper())\n\n    def test_add(self):\n        pass\n",
            "2 times",
        ),
        ("    @unittest.expectedFailure", "    @unittest.skip('x')\n    @unittest.expectedFailure", "edited"),
        ("    # About the test.", "    @unittest.skip('x')\n    # About the test.", "edited"),
        ("add(1, 2)", "add(1, 3)", "edited"),
        ("# unusual comment\n", "# unusual comment\n            return\n", "edited"),
        ("return 1", "return 2", "outside of the tests was changed"),
        ("LIMIT = 10\n", "", "outside of the tests was changed"),
        ("from calc import add\n", "from fake import add\n", "replaces what the test uses"),
        ("LIMIT = 10\n", "LIMIT = 10\n\n\ndef add(a, b):\n    return 3\n", "replaces what the test uses"),
        ("LIMIT = 10\n", "LIMIT = 10\nhelper = add = lambda *a: 3\n", "replaces what the test uses"),
        ("LIMIT = 10\n", "LIMIT = 10\nimport sys\nsys.modules['calc'] = sys\n", "replaces what the test uses"),
        ("    def test_other", "    test_add = None\n\n    def test_other", "replaces what the test uses"),
        ("class TestAdd", "\"\"\"\nclass TestAdd", "removed, renamed or commented out"),
    ] {
        assert!(PYTHON.contains(from));
        let found = why(0, &PYTHON.replacen(from, to, 1)).unwrap_or_default();
        assert!(found.contains(message), "{from:?} {to:?}: {found}");
    }
}

#[test]
fn changes_that_leave_the_test_as_it_was_are_allowed() {
    for (from, to) in [
        ("from calc import add\n", "import os\nfrom calc import add, sub\n"),
        ("import unittest\n", "import unittest\nfrom other import sub\n"),
        ("        self.base = 1\n", "        self.base = 1\n        self.other = 2\n"),
        ("add(1, 1), 2", "add(1, 1), 3"),
        ("LIMIT = 10\n", "LIMIT = 10\nOTHER = 11\n"),
        ("LIMIT = 10\n", "LIMIT = 10\n# test_add is below\n"),
    ] {
        assert_eq!(why(0, &PYTHON.replacen(from, to, 1)), None, "{to}");
    }
    // The code under test is in the same file.
    assert_eq!(why(1, &RUST.replace("a - b", "a + b")), None);
    assert!(why(1, &RUST.replace("-> i32 { 1 }", "-> i32 { 2 }")).is_some());
    assert!(
        why(1, &RUST.replace("    use super::*;\n", "    use super::*;\n    fn add(_: i32, _: i32) -> i32 { 3 }\n"))
            .is_some()
    );
    assert!(why(1, &RUST.replace("    #[test]\n    #[should", "    #[test]\n    #[ignore]\n    #[should")).is_some());
    assert!(why(2, &JAVASCRIPT.replace("describe(", "describe.skip(")).is_some());
    assert!(why(2, &JAVASCRIPT.replace("test('adds'", "test.skip('adds'")).is_some());
    assert!(why(2, &JAVASCRIPT.replace("\nfunction", "\njest.mock('./calc');\nfunction")).is_some());
    for added in [
        "import unittest.mock\n",
        "from unittest import (\n    mock,\n)\n",
        "def fake_add(monkeypatch):\n    assertEqual = 1\n    monkeypatch.setattr('x', 'y', 1)\n",
        "class TestNew(unittest.TestCase):\n    def setUp(self):\n        self.base = 2\n",
        "@patch('calc.x')\nclass TestNew(unittest.TestCase):\n    pass\n",
    ] {
        assert_eq!(why(0, &PYTHON.replace("class TestAdd", &format!("{added}\n\nclass TestAdd"))), None, "{added}");
    }
    for added in [
        "from fake import (\n    add,\n)\n",
        "import fake as add\n",
        "def replace():\n    global add\n    add = max\n",
        "def replace():\n    unittest.TestCase.assertEqual = print\n",
        "if True:\n    def add(a, b):\n        return 3\n",
        "def setUpModule():\n    pass\n",
        "@patch('calc.x')",
    ] {
        let now = PYTHON.replace("class TestAdd", &format!("{added}\nclass TestAdd"));
        assert!(why(0, &now).is_some(), "{added}");
    }
    // A base class in the same file.
    let base = PYTHON.replace(
        "class TestAdd(unittest.TestCase)",
        "class Base(unittest.TestCase):\n    pass\n\n\nclass TestAdd(Base)",
    );
    let now = base.replace("    pass\n\n\n", "    pass\n\n    def assertEqual(self, *a):\n        pass\n\n\n");
    let target = Target::test("TestAdd.test_add");
    assert!(tampered("test_calc.py", base.as_bytes(), Some(now.as_bytes()), &target).is_some());
    // The comment above a test is not a part of it.
    for comment in ["    /// Adds two numbers.\n    /// More.\n\n", "", "    // Adds.\n\n\n"] {
        assert_eq!(why(1, &RUST.replace("    /// Adds.\n", comment)), None, "{comment}");
    }
    // All tests of a file are the target.
    let file = Target::File { path: "tests/test_calc.py".into() };
    let other = PYTHON.replace("add(1, 1), 2", "add(1, 1), 3");
    assert!(tampered("tests/test_calc.py", PYTHON.as_bytes(), Some(other.as_bytes()), &file).is_some());
    // Of other languages each line must stay.
    let target = Target::test("adds");
    let ruby = "def test_adds\n  assert 1\nend\n";
    assert!(tampered("t.rb", ruby.as_bytes(), Some(b"def test_adds\nend\n"), &target).is_some());
    assert_eq!(tampered("t.rb", ruby.as_bytes(), Some(format!("{ruby}def test_new\nend\n").as_bytes()), &target), None);
}

#[test]
fn where_no_test_function_is_known_each_line_stays() {
    let script = "import sys\nfrom calc import add\n\n# The sum.\nassert add(1, 2) == 3\n";
    let file = Target::File { path: "verify/sum.py".into() };
    let check = |path: &str, base: &str, now: &str, target: &Target| {
        tampered(path, base.as_bytes(), Some(now.as_bytes()), target)
    };
    let why = check("verify/sum.py", script, &script.replace("== 3", "!= 3"), &file).unwrap();
    assert_eq!(why, "`verify/sum.py`: the line `assert add(1, 2) == 3` was changed or removed");
    assert!(check("verify/sum.py", script, &script.replace("from calc", "from fake"), &file).is_some());
    assert_eq!(check("verify/sum.py", script, &format!("{script}assert add(2, 2) == 4\n"), &file), None);
    let checks = "from calc import add\n\n\ndef check_add():\n    assert add(1, 2) == 3\n";
    // Another test of the file is known.
    let mixed = &format!("{checks}\n\ndef test_other():\n    assert add(1, 1) == 2\n");
    for base in [checks, mixed] {
        let target = Target::test("checks/check_calc.py::check_add");
        assert!(check("checks/check_calc.py", base, &base.replace("== 3", "== 4"), &target).is_some());
        assert_eq!(
            check("checks/check_calc.py", base, &format!("{base}\n\ndef check_b():\n    pass\n"), &target),
            None
        );
    }
    let node = "const assert = require('assert');\nassert.equal(add(1, 2), 3);\n";
    let target = Target::File { path: "verify/sum.js".into() };
    assert!(check("verify/sum.js", node, &node.replace("2), 3", "2), 4"), &target).is_some());
    // The code under test has the test in its documentation.
    let code = "def add(a, b):\n    \"\"\"Adds.\n\n    >>> add(1, 2)\n    3\n    \"\"\"\n    return a - b\n";
    let target = Target::test("pkg/calc.py::pkg.calc.add");
    assert_eq!(check("pkg/calc.py", code, &code.replace("a - b", "a + b"), &target), None);
    assert!(check("pkg/calc.py", code, &code.replace("    3\n", "    -1\n"), &target).is_some());
}

#[derive(Debug, Clone)]
enum Edit {
    Remove,
    Insert(String),
    Replace(char),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        Just(Edit::Remove),
        "[ \t]{0,8}(return|pass|#|//|\\}|\"\"\"|x)?".prop_map(Edit::Insert),
        any::<char>().prop_map(Edit::Replace)
    ]
}

proptest! {
    #[test]
    fn any_edit_within_the_test_is_found(case in 0..CASES.len(), at in any::<prop::sample::Index>(), column in any::<prop::sample::Index>(), edit in edit()) {
        let (_, text, _, [first, last], _) = CASES[case];
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let line = first + at.index(last + 1 - first);
        match edit {
            Edit::Remove => {
                lines.remove(line);
            }
            // After the first line and before the last one.
            Edit::Insert(new) => lines.insert(line.max(first + 1), new),
            Edit::Replace(new) => {
                prop_assume!(!new.is_control() && !lines[line].is_empty());
                let mut characters: Vec<char> = lines[line].chars().collect();
                let column = column.index(characters.len());
                prop_assume!(characters[column] != new);
                characters[column] = new;
                lines[line] = characters.into_iter().collect();
            }
        }
        let now = lines.join("\n") + "\n";
        prop_assert!(why(case, &now).is_some(), "{}", now);
    }

    #[test]
    fn lines_that_take_a_test_its_meaning_are_found(index in 0..NEUTERING.len(), place in 0..3_usize) {
        let (case, new) = NEUTERING[index];
        let now = with_lines(case, new, place);
        prop_assert!(why(case, &now).is_some(), "{}", now);
    }

    #[test]
    fn the_same_lines_in_another_class_are_allowed(index in 0..NEUTERING.len()) {
        let (case, new) = NEUTERING[index];
        let (_, text, ..) = CASES[case];
        let now = match case {
            0 => format!("{text}\n\nclass TestNew(unittest.TestCase):\n{new}\n    def test_new(self):\n        pass\n"),
            2 | 3 => format!("{text}\ndescribe('new', () => {{\n{new}\n  test('new', () => {{}});\n}});\n"),
            _ => return Ok(()),
        };
        prop_assert_eq!(why(case, &now), None, "{}", now);
    }

    #[test]
    fn an_added_test_elsewhere_is_allowed(case in 0..CASES.len(), place in 0..3_usize) {
        let now = with_lines(case, CASES[case].4, place);
        prop_assert_eq!(why(case, &now), None, "{}", now);
    }

    #[test]
    fn no_text_makes_the_comparison_fail(base in "(?s).{0,200}", now in "(?s)(def test_a\\(\\):|'|\"|\"\"\"|r#|\\{|\\}|\\(|`|/|\\*|@|#\\[test\\]|fn a\\(\\)|test\\('x',|\n| ){0,60}", path in "a\\.(py|rs|go|js|txt)") {
        let target = Target::test("a");
        let _ = tampered(&path, base.as_bytes(), Some(now.as_bytes()), &target);
        prop_assert_eq!(tampered(&path, now.as_bytes(), Some(now.as_bytes()), &target), None);
        let _ = tampered(&path, now.as_bytes(), Some(base.as_bytes()), &target);
    }
}
