//! Random expressions as trees, so that a failing one can be made smaller.

use std::fmt::Write as _;

use fastrand::Rng;

use crate::data;
use crate::templates::{TEMPLATES, Template, Type};

/// An expression.
#[derive(Clone)]
pub(crate) enum Tree {
    Leaf(String),
    Form { template: &'static Template, name: String, parts: Vec<Tree> },
}

impl Tree {
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        self.write(&mut text);
        text
    }

    fn write(&self, text: &mut String) {
        match self {
            Tree::Leaf(leaf) => text.push_str(leaf),
            Tree::Form { template, name, parts } => {
                let mut parts = parts.iter();
                let mut pieces = template.text.split("{}");
                text.push_str(&pieces.next().unwrap_or_default().replace('$', name));
                for piece in pieces {
                    if let Some(part) = parts.next() {
                        part.write(text);
                    }
                    let _ = write!(text, "{}", piece.replace('$', name));
                }
            }
        }
    }

    /// Returns all trees in which one form is replaced by one of its parts or by a constant.
    pub(crate) fn smaller(&self) -> Vec<Tree> {
        let Tree::Form { template, name, parts } = self else { return Vec::new() };
        let constants = ["true", "1", "'a'"].map(|text| Tree::Leaf(text.to_owned()));
        let mut smaller: Vec<Tree> = parts.iter().cloned().chain(constants).collect();
        for (index, part) in parts.iter().enumerate() {
            for replaced in part.smaller() {
                let mut parts = parts.clone();
                parts[index] = replaced;
                smaller.push(Tree::Form { template, name: name.clone(), parts });
            }
        }
        smaller
    }
}

/// Forms that print their parts, where the digits of doubles and durations differ, and forms that take other types of parts
/// here and there.
const EXACT: [&str; 4] = [".format(", "string(", "int(", "[?"];

/// The state of a generation.
pub(crate) struct Generator<'r> {
    rng: &'r mut Rng,
    /// The names that enclosing forms define.
    scope: Vec<(String, Type)>,
}

impl<'r> Generator<'r> {
    pub(crate) fn new(rng: &'r mut Rng) -> Self {
        Self { rng, scope: Vec::new() }
    }

    /// Returns an expression. One part of twenty has another type than its place takes, except for exact forms,
    /// and the range of a loop, because the order of the keys of a map differs.
    pub(crate) fn tree(&mut self, wanted: Type, depth: usize, exact: bool) -> Tree {
        let wanted = if !exact && self.rng.u8(0..20) == 0 { self.any_type() } else { wanted };
        if depth == 0 || self.rng.u8(0..8) == 0 {
            return Tree::Leaf(self.leaf(wanted));
        }
        let fitting: Vec<_> = TEMPLATES.iter().filter(|template| template.whole == wanted).collect();
        let Some(template) = self.rng.choice(fitting) else { return Tree::Leaf(self.leaf(wanted)) };
        let name = format!("v{}", self.scope.len());
        let mut parts = Vec::new();
        for (index, kind) in template.parts.iter().enumerate() {
            let scope = template.scope.filter(|(part, _)| *part == index);
            self.scope.extend(scope.map(|(_, kind)| (name.clone(), kind)));
            let exact = exact || EXACT.iter().any(|form| template.text.contains(form));
            let exact = exact || index == 0 && template.scope.is_some();
            parts.push(self.tree(*kind, depth - 1, exact));
            self.scope.truncate(self.scope.len() - usize::from(scope.is_some()));
        }
        Tree::Form { template, name, parts }
    }

    pub(crate) fn any_type(&mut self) -> Type {
        let templates = TEMPLATES;
        self.rng.choice(templates).map_or(Type::Bool, |template| template.whole)
    }

    fn leaf(&mut self, wanted: Type) -> String {
        let named: Vec<_> = self.scope.iter().filter(|(_, kind)| *kind == wanted).collect();
        if self.rng.bool()
            && let Some((name, _)) = self.rng.choice(named)
        {
            return name.clone();
        }
        let rng = &mut *self.rng;
        let field = match wanted {
            Type::Bool => "b",
            Type::Int => *rng.choice(&["n", "k"]).unwrap_or(&"n"),
            Type::Double => "d",
            Type::String => *rng.choice(&["s", "t"]).unwrap_or(&"s"),
            Type::Ints => "l",
            Type::Strings => "ls",
            Type::Objects => "lo",
            Type::Object => "m",
            Type::Uint | Type::Bytes | Type::Timestamp | Type::Duration => "",
        };
        if !field.is_empty() && rng.u8(0..3) > 0 {
            return format!("output.{field}");
        }
        self.literal(wanted)
    }

    fn literal(&mut self, wanted: Type) -> String {
        const TIMES: [&str; 6] = [
            "timestamp('2026-01-31T23:30:00Z')",
            "timestamp('2026-03-29T01:00:00.5+01:00')",
            "timestamp('1969-12-31T23:59:59.999Z')",
            "timestamp('2024-02-29T12:00:00-11:30')",
            "timestamp(0)",
            "timestamp('2026-10-25T00:30:00Z')",
        ];
        const DURATIONS: [&str; 6] = ["1s", "-90m", "1h30m1.25s", "100ms", "24h", "0s"];
        let rng = &mut *self.rng;
        match wanted {
            Type::Bool => rng.bool().to_string(),
            Type::Int => rng.i64(-3..70).to_string(),
            Type::Uint => format!("{}u", rng.u64(0..9)),
            Type::Double => format!("{:?}", data::double(rng)),
            Type::String => format!("'{}'", data::word(rng)),
            Type::Bytes => format!("b'{}'", data::word(rng)),
            Type::Ints => "[1, 2, 3]".to_owned(),
            Type::Strings => "['a', 'ab']".to_owned(),
            Type::Objects => "[{'s': 'a', 'n': 1}]".to_owned(),
            Type::Object => "{'s': 'b', 'n': 2, 'b': true}".to_owned(),
            Type::Timestamp => rng.choice(TIMES).unwrap_or("timestamp(0)").to_owned(),
            Type::Duration => format!("duration('{}')", rng.choice(DURATIONS).unwrap_or("1s")),
        }
    }
}
