//! Names: variables, types, and misspelt functions.

use cel::common::ast::IdedExpr;

use super::resolver::{CompileError, Resolver};
use crate::functions;
use crate::node::Kind;
use crate::values::Type;

/// The macros, and the functions that are not in the table because they do not evaluate all of their arguments first.
const MACROS: [&str; 16] = [
    "has",
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "map",
    "transformList",
    "transformMap",
    "transformMapEntry",
    "cel.bind",
    "optMap",
    "optFlatMap",
    "or",
    "orValue",
    "matches",
];

/// Smallest similarity of a name that is suggested.
const SIMILAR: f64 = 0.75;

impl Resolver<'_> {
    /// Resolves a variable or a type. A leading point skips the variables of macros.
    pub(super) fn name(&self, tree: &IdedExpr, name: &str) -> Result<Kind, CompileError> {
        let (name, global) = match name.strip_prefix('.') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if let Some(local) = self.locals.iter().rposition(|local| local == name && !global) {
            return Ok(Kind::Local(local));
        }
        if let Some(variable) = self.variables.iter().position(|variable| variable == name) {
            return Ok(Kind::Variable(variable));
        }
        if let Some(kind) = Type::named(name) {
            return Ok(Kind::Type(kind));
        }
        let message = format!("unknown variable `{name}`");
        Err(self.error(tree, message, format!("known variables: {}", self.variables.join(", "))))
    }

    pub(super) fn is_variable(&self, name: &str) -> bool {
        self.locals.iter().chain(self.variables).any(|variable| variable == name)
    }

    pub(super) fn no_function(&self, tree: &IdedExpr, name: &str) -> CompileError {
        let known = functions::exists(name) || MACROS.contains(&name);
        let message = if known {
            format!("`{name}` does not take these arguments")
        } else {
            format!("unknown function `{name}`")
        };
        let remedy = match name {
            "length" | "count" => "write `size(x)`".to_owned(),
            "lower" | "toLower" => "write `x.lowerAscii()`".to_owned(),
            _ if known => "the documentation of expressions lists the arguments of each function".to_owned(),
            _ => similar(name).map_or_else(
                || "the documentation of expressions lists all functions".to_owned(),
                |similar| format!("did you mean `{similar}`?"),
            ),
        };
        let last = name.rsplit('.').next().unwrap_or(name);
        CompileError { span: self.source.function_name(tree.id, last), message, remedy }
    }
}

/// Returns the known name that is most similar.
fn similar(name: &str) -> Option<&'static str> {
    let similarity = |known: &str| strsim::jaro_winkler(&known.to_lowercase(), &name.to_lowercase());
    let candidates = functions::names().chain(MACROS).map(|known| (similarity(known), known));
    let best = candidates.max_by(|(left, _), (right, _)| left.total_cmp(right))?;
    (best.0 >= SIMILAR).then_some(best.1)
}
