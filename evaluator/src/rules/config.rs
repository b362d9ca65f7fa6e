//! Reads rules of comparison from `counterproof.toml`, and explains the errors in them.

use counterproof_artifact::Share;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use toml::Spanned;

use super::rule::{Effect, Form, Rule, Rules, Selector, Tolerance};
use super::rule::{InvalidPattern, Pattern};

const EFFECTS: &str = "`ignore`, `normalise`, `tolerance`, `unordered`, `key` and `default`";

/// The rules as they are in the file, each with its position in the text.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct RuleTables {
    rules: Vec<Spanned<RuleTable>>,
}

/// An invalid rule.
#[derive(Debug, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RuleError {
    /// The line of the text on which the rule begins, counted from 1.
    pub line: usize,
    /// The error and its remedy.
    pub problem: RuleProblem,
}

/// Why a rule is invalid, with the remedy.
#[derive(Debug, thiserror::Error)]
pub enum RuleProblem {
    /// It selects by tool and by event.
    #[error("a rule cannot have both `tool` and `event`: write one rule for each")]
    ToolAndEvent,
    /// It changes nothing.
    #[error("the rule has no effect: add one of {EFFECTS}")]
    NoEffect,
    /// It has more than one effect.
    #[error("a rule can have only one of {EFFECTS}: write one rule for each")]
    SeveralEffects,
    /// It would ignore everything.
    #[error(
        "`ignore` without a `path` needs a `tool` or an `event`: write `tool = \"get_time\"` or `path = \"/args/date\"`"
    )]
    IgnoresEverything,
    /// Its effect needs a path.
    #[error("a rule needs a `path`, such as `/args/date`; only `ignore` can omit it, for a whole tool or event")]
    MissingPath,
    /// Its path is not a JSON Pointer.
    #[error(transparent)]
    Path(#[from] InvalidPattern),
    /// A flag, named here, is `false`.
    #[error("`{0}` must be `true` or omitted: remove the rule to disable it")]
    DisabledFlag(&'static str),
    /// Its tolerance accepts no difference, or is not a finite number.
    #[error("`tolerance` must be greater than zero: write `0.01`, or `{{ relative = 0.05 }}` for 5 %")]
    Tolerance,
    /// Its default is a TOML date.
    #[error("`default` must be a JSON value, and JSON has no dates: write the date in quotes")]
    DateAsDefault,
}

impl RuleTables {
    /// Checks and converts the rules. `text` is the source, for line numbers.
    pub fn compile(self, text: &str) -> Result<Rules, RuleError> {
        let compile = |table: Spanned<RuleTable>| {
            // `toml` reports spans in bytes; people look for lines.
            let before = text.get(..table.span().start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            Rule::try_from(table.into_inner()).map_err(|problem| RuleError { line, problem })
        };
        let rules = self.rules.into_iter().map(compile).collect::<Result<_, _>>()?;
        Ok(Rules { rules })
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleTable {
    tool: Option<String>,
    event: Option<String>,
    path: Option<String>,
    ignore: Option<bool>,
    normalise: Option<Form>,
    tolerance: Option<ToleranceValue>,
    unordered: Option<bool>,
    key: Option<String>,
    default: Option<Value>,
}

/// A number, or both kinds by name.
#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a number, or `{ absolute = 0.01, relative = 0.05 }` with one or both fields")]
enum ToleranceValue {
    Absolute(f64),
    Both(Both),
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Both {
    absolute: f64,
    #[serde(deserialize_with = "ratio")]
    relative: f64,
}

/// Reads a number or a percentage. Unlike a share, a ratio may exceed 1.
fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Ratio {
        Number(f64),
        Percentage(Share),
    }

    Ok(match Ratio::deserialize(deserializer)? {
        Ratio::Number(number) => number,
        Ratio::Percentage(share) => share.value(),
    })
}

impl TryFrom<RuleTable> for Rule {
    type Error = RuleProblem;

    fn try_from(table: RuleTable) -> Result<Self, RuleProblem> {
        let selector = match (table.tool, table.event) {
            (None, None) => Selector::Everything,
            (Some(tool), None) => Selector::Tool(tool),
            (None, Some(event)) => Selector::Event(event),
            (Some(_), Some(_)) => return Err(RuleProblem::ToolAndEvent),
        };
        let mut effects = [
            flag("ignore", table.ignore)?.then_some(Effect::Ignore),
            table.normalise.map(Effect::Normalise),
            table.tolerance.as_ref().map(tolerance).transpose()?,
            flag("unordered", table.unordered)?.then_some(Effect::Unordered),
            table.key.map(Effect::Key),
            table.default.map(default).transpose()?,
        ]
        .into_iter()
        .flatten();
        match (effects.next(), effects.next()) {
            (Some(effect), None) => {
                Ok(Self { path: path(table.path.as_deref(), &selector, &effect)?, selector, effect })
            }
            (None, _) => Err(RuleProblem::NoEffect),
            (Some(_), Some(_)) => Err(RuleProblem::SeveralEffects),
        }
    }
}

fn path(text: Option<&str>, selector: &Selector, effect: &Effect) -> Result<Pattern, RuleProblem> {
    // A missing or empty path selects everything, which only `ignore` supports.
    match (text, selector, effect) {
        (Some(path), ..) if !path.is_empty() => Ok(path.parse()?),
        (_, Selector::Tool(_), Effect::Ignore) => Ok(Pattern::tool_data()),
        (_, Selector::Event(_), Effect::Ignore) => Ok(Pattern::event_data()),
        (_, Selector::Everything, Effect::Ignore) => Err(RuleProblem::IgnoresEverything),
        _ => Err(RuleProblem::MissingPath),
    }
}

fn flag(name: &'static str, flag: Option<bool>) -> Result<bool, RuleProblem> {
    match flag {
        // `false` could be read as a rule that overrides an earlier one, which no rule can.
        Some(false) => Err(RuleProblem::DisabledFlag(name)),
        flag => Ok(flag.is_some()),
    }
}

fn tolerance(value: &ToleranceValue) -> Result<Effect, RuleProblem> {
    let (absolute, relative) = match value {
        ToleranceValue::Absolute(absolute) => (*absolute, 0.0),
        ToleranceValue::Both(Both { absolute, relative }) => (*absolute, *relative),
    };
    // A tolerance of zero would be a rule without an effect, and a negative or infinite one is a typing error.
    let usable = |number: f64| number.is_finite() && number >= 0.0;
    if usable(absolute) && usable(relative) && absolute + relative > 0.0 {
        return Ok(Effect::Tolerance(Tolerance { absolute, relative }));
    }
    Err(RuleProblem::Tolerance)
}

fn default(value: Value) -> Result<Effect, RuleProblem> {
    // The `toml` crate deserializes a date to a map with this private key.
    if value.get("$__toml_private_datetime").is_some() {
        return Err(RuleProblem::DateAsDefault);
    }
    Ok(Effect::Default(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rejection(rule: &str) -> String {
        #[derive(Debug, Deserialize)]
        struct File {
            rule: RuleTables,
        }
        let text = format!("[[rule]]\npath = \"/a\"\nignore = true\n\n[[rule]]\n{rule}\n");
        match toml::from_str::<File>(&text) {
            Ok(file) => file.rule.compile(&text).unwrap_err().to_string(),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn an_invalid_rule_is_rejected_with_its_line_and_a_remedy() {
        for (rule, message) in [
            (
                "path = \"args.date\"\nignore = true",
                "line 5: `path` is a JSON Pointer and starts with `/`: write `/args/date`",
            ),
            ("ignore = true", "line 5: `ignore` without a `path` needs a `tool` or an `event`"),
            ("path = \"\"\nignore = true", "line 5: `ignore` without a `path` needs a `tool` or an `event`"),
            ("tool = \"x\"\nunordered = true", "line 5: a rule needs a `path`, such as `/args/date`; only `ignore`"),
            ("tool = \"x\"\npath = \"\"\nkey = \"id\"", "line 5: a rule needs a `path`"),
            ("path = \"/a\"", "line 5: the rule has no effect: add one of `ignore`"),
            ("path = \"/a\"\nignore = true\nkey = \"id\"", "line 5: a rule can have only one of"),
            (
                "path = \"/a\"\ntool = \"x\"\nevent = \"y\"\nignore = true",
                "line 5: a rule cannot have both `tool` and `event`",
            ),
            ("path = \"/a\"\nignore = false", "line 5: `ignore` must be `true` or omitted"),
            ("path = \"/a\"\ntolerance = -1", "line 5: `tolerance` must be greater than zero"),
            ("path = \"/a\"\ndefault = 2026-01-31", "line 5: `default` must be a JSON value"),
            ("path = \"/a\"\nnormalize = \"uuid\"", "line 7"),
            ("path = \"/a\"\nnormalise = \"date\"", "line 7"),
        ] {
            let found = rejection(rule);
            assert!(found.contains(message), "{rule}\n{found}");
        }
    }
}
