//! The evaluation of nodes: variables, operators and calls.

use serde_json::Value as Json;

use crate::budget::{Budget, Evaluated, MAX_STEPS, Stop, failed};
use crate::functions::Function;
use crate::node::Matcher;
use crate::node::{Kind, Node, Pattern};
use crate::operations::{Operator, arithmetic, equal, is_in, negate, order};
use crate::values::{Str, Value, shortened};

/// One evaluation in progress.
pub(crate) struct Evaluation<'j> {
    variables: &'j [&'j Json],
    locals: Vec<Local<'j>>,
    pub(super) budget: Budget,
}

/// The variable of an enclosing macro.
#[derive(Debug)]
enum Local<'j> {
    Value(Value<'j>),
    /// The value of `cel.bind`, which is evaluated when it is used first.
    Unused(&'j Node),
}

/// Which logical operator joins two operands.
#[derive(Debug, Clone, Copy)]
enum Junction {
    And,
    Or,
}

impl<'j> Evaluation<'j> {
    /// Starts an evaluation. The values are in the order of the variables that the tree was compiled with.
    pub(crate) fn new(variables: &'j [&'j Json]) -> Self {
        Self::with_budget(variables, Budget::with_steps(MAX_STEPS))
    }

    pub(crate) const fn with_budget(variables: &'j [&'j Json], budget: Budget) -> Self {
        Self { variables, locals: Vec::new(), budget }
    }

    pub(crate) fn budget(&mut self) -> &mut Budget {
        &mut self.budget
    }

    /// Evaluates a node. A failure gets the range of the innermost node that fails.
    pub(crate) fn value(&mut self, node: &'j Node) -> Evaluated<'j> {
        // Before the node: also a node that fails has taken a step, and a loop of failures ends.
        self.budget.charge(1)?;
        self.kind(&node.kind).map_err(|stop| match stop {
            // Only without a span, so that the innermost node is the one that a message points at.
            Stop::Failed { message, span: None } => Stop::Failed { message, span: Some(node.span.clone()) },
            other => other,
        })
    }

    fn kind(&mut self, kind: &'j Kind) -> Evaluated<'j> {
        Ok(match kind {
            Kind::Null => Value::Null,
            Kind::Bool(value) => Value::Bool(*value),
            Kind::Int(value) => Value::Int(*value),
            Kind::Uint(value) => Value::Uint(*value),
            Kind::Double(value) => Value::Double(*value),
            Kind::String(text) => Value::String(Str::Borrowed(text)),
            Kind::Bytes(bytes) => {
                // Text is borrowed from the tree, and bytes are copied: only computed bytes exist besides literals.
                self.budget.create_text(bytes.len())?;
                Value::Bytes((&**bytes).into())
            }
            Kind::Type(kind) => Value::Type(*kind),
            Kind::List(elements) => self.list(elements)?,
            Kind::Map(entries) => self.map(entries)?,
            Kind::Variable(index) => self.variables.get(*index).map_or(Value::Null, |json| Value::from_json(json)),
            Kind::Local(index) => self.local(*index)?,
            Kind::Field { of, name } => self.field(of, name)?,
            Kind::Has { of, name } => self.has(of, name)?,
            Kind::Item { of, at } => self.item(of, at)?,
            Kind::And(left, right) => self.logical(left, right, Junction::And)?,
            Kind::Or(left, right) => self.logical(left, right, Junction::Or)?,
            Kind::Not(operand) => Value::Bool(!self.boolean(operand, "`!`")?),
            Kind::Negate(operand) => {
                let value = self.value(operand)?;
                negate(&value).map_err(|stop| stop.or_describe(|| format!("`-` does not take {}", value.describe())))?
            }
            Kind::If { condition, then, otherwise } => {
                // Only the chosen branch is evaluated, so that the other one may fail.
                let decision = if self.boolean(condition, "`?`")? { then } else { otherwise };
                self.value(decision)?
            }
            Kind::Binary { operator, left, right } => {
                // The left operand first: of two failures the first one in the text is reported.
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.binary(*operator, &left, &right).map_err(|stop| {
                    let (left, right) = (left.describe(), right.describe());
                    stop.or_describe(|| format!("`{}` does not take {left} and {right}", operator.as_str()))
                })?
            }
            Kind::Call { function, arguments } => self.call(function, arguments)?,
            Kind::Matches { text, pattern } => self.matches(text, pattern)?,
            Kind::Loop(body) => self.loop_value(body)?,
            Kind::Bind { value, body } => self.bind(value, body)?,
        })
    }

    /// Evaluates a node with variables of a macro.
    pub(super) fn value_with<const N: usize>(&mut self, variables: [Value<'j>; N], node: &'j Node) -> Evaluated<'j> {
        let outer = self.locals.len();
        self.locals.extend(variables.map(Local::Value));
        let value = self.value(node);
        self.locals.truncate(outer);
        value
    }

    fn bind(&mut self, value: &'j Node, body: &'j Node) -> Evaluated<'j> {
        let outer = self.locals.len();
        // Not evaluated yet: a value that the body does not use must not fail.
        self.locals.push(Local::Unused(value));
        let value = self.value(body);
        self.locals.truncate(outer);
        value
    }

    fn local(&mut self, index: usize) -> Evaluated<'j> {
        let node = match self.locals.get(index) {
            Some(Local::Value(value)) => return Ok(value.clone()),
            Some(Local::Unused(node)) => *node,
            None => return Ok(Value::Null),
        };
        // The bound expression knows only the variables outside of it.
        let inner = self.locals.split_off(index);
        let value = self.value(node);
        self.locals.extend(inner);
        let value = value?;
        // Kept, so that a second use takes no steps.
        self.locals[index] = Local::Value(value.clone());
        Ok(value)
    }

    /// Evaluates a node whose value must be a boolean.
    fn boolean(&mut self, node: &'j Node, what: &str) -> Result<bool, Stop> {
        match self.value(node)? {
            Value::Bool(value) => Ok(value),
            other => {
                let message = format!("{what} takes a boolean, not {}", other.describe());
                Err(Stop::Failed { message, span: Some(node.span.clone()) })
            }
        }
    }

    /// Evaluates `&&` and `||`. One deciding operand is enough, even if the other one fails, as CEL specifies.
    fn logical(&mut self, left: &'j Node, right: &'j Node, junction: Junction) -> Evaluated<'j> {
        let (what, decides) = match junction {
            Junction::And => ("`&&`", false),
            Junction::Or => ("`||`", true),
        };
        let first = match self.boolean(left, what) {
            Ok(value) if value == decides => return Ok(Value::Bool(decides)),
            // The limit on work ends the whole expression: the right operand must not rescue it.
            Err(Stop::TooLong) => return Err(Stop::TooLong),
            other => other,
        };
        match (first, self.boolean(right, what)) {
            (_, Ok(second)) if second == decides => Ok(Value::Bool(decides)),
            (_, Err(Stop::TooLong)) => Err(Stop::TooLong),
            // If both fail, the first failure is reported.
            (Err(stop), _) | (Ok(_), Err(stop)) => Err(stop),
            (Ok(_), Ok(second)) => Ok(Value::Bool(second)),
        }
    }

    fn binary(&mut self, operator: Operator, left: &Value<'j>, right: &Value<'j>) -> Evaluated<'j> {
        let budget = &mut self.budget;
        Ok(match operator {
            Operator::Equal => Value::Bool(equal(budget, left, right)?),
            Operator::NotEqual => Value::Bool(!equal(budget, left, right)?),
            Operator::In => Value::Bool(is_in(budget, left, right)?),
            Operator::Less => Value::Bool(order(budget, left, right)?.is_some_and(std::cmp::Ordering::is_lt)),
            Operator::LessOrEqual => Value::Bool(order(budget, left, right)?.is_some_and(std::cmp::Ordering::is_le)),
            Operator::Greater => Value::Bool(order(budget, left, right)?.is_some_and(std::cmp::Ordering::is_gt)),
            Operator::GreaterOrEqual => Value::Bool(order(budget, left, right)?.is_some_and(std::cmp::Ordering::is_ge)),
            Operator::Add | Operator::Subtract | Operator::Multiply | Operator::Divide | Operator::Modulo => {
                arithmetic(budget, operator, left, right)?
            }
        })
    }
}

/// Bytes of a string that are matched against a regular expression in one step.
const MATCHED_BYTES_PER_STEP: usize = 4;

/// Steps for compiling a computed regular expression.
const COMPILE_STEPS: u64 = 5_000;

/// Maximum length of a computed regular expression, in bytes.
const MAX_COMPUTED_BYTES: usize = 1_000;

impl<'j> Evaluation<'j> {
    pub(super) fn call(&mut self, function: &'static Function, arguments: &'j [Node]) -> Evaluated<'j> {
        let values: Vec<Value<'j>> = arguments.iter().map(|argument| self.value(argument)).collect::<Result<_, _>>()?;
        (function.run)(&mut self.budget, &values).map_err(|stop| {
            stop.or_describe(|| {
                let described: Vec<_> = values.iter().map(Value::describe).collect();
                format!("`{}` does not take {}", function.name, described.join(" and "))
            })
        })
    }

    pub(super) fn matches(&mut self, text: &'j Node, pattern: &'j Pattern) -> Evaluated<'j> {
        let text = self.value(text)?;
        let Value::String(text) = &text else {
            return failed(format!("`matches` takes strings, not {}", text.describe()));
        };
        let node = match pattern {
            Pattern::Literal(matcher) => return self.is_match(matcher, text.as_str()),
            Pattern::Computed(node) => node,
        };
        let pattern = self.value(node)?;
        let Value::String(pattern) = &pattern else {
            return failed(format!("`matches` takes strings, not {}", pattern.describe()));
        };
        // Before the length is checked, so that a loop over refused patterns is bounded too.
        self.budget.charge(COMPILE_STEPS)?;
        if pattern.as_str().len() > MAX_COMPUTED_BYTES {
            return failed(format!("a regular expression has more than {MAX_COMPUTED_BYTES} bytes"));
        }
        match Matcher::compile(pattern.as_str()) {
            Ok(matcher) => self.is_match(&matcher, text.as_str()),
            Err(error) => failed(format!("“{}” is {error}", shortened(pattern.as_str()))),
        }
    }

    fn is_match(&mut self, matcher: &Matcher, text: &str) -> Evaluated<'j> {
        // By the weight of the pattern, because the engine takes time by the product of both.
        self.budget.charge((text.len() / MATCHED_BYTES_PER_STEP) as u64 * matcher.weight())?;
        Ok(Value::Bool(matcher.is_match(text)))
    }
}
