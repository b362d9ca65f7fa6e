//! What a function is, and the table of all functions.

use Style::{Either, Global, Method};

use super::{convert, format, lists, numbers, text, time};
use crate::budget::{Budget, Evaluated};
use crate::values::Value;

/// Maximum number of arguments of a function that takes any number of them.
const MANY: usize = usize::MAX;

const fn function(name: &'static str, style: Style, arguments: (usize, usize), run: Run) -> Function {
    Function { name, style, arguments, run }
}

static FUNCTIONS: [Function; 56] = [
    function("size", Either, (1, 1), convert::size),
    function("len", Method, (1, 1), convert::size),
    function("type", Global, (1, 1), convert::type_of),
    function("dyn", Global, (1, 1), convert::dyn_value),
    function("bool", Global, (1, 1), convert::to_bool),
    function("int", Global, (1, 1), convert::to_int),
    function("uint", Global, (1, 1), convert::to_uint),
    function("double", Global, (1, 1), convert::to_double),
    function("string", Global, (1, 1), convert::to_string),
    function("bytes", Global, (1, 1), convert::to_bytes),
    function("timestamp", Global, (1, 1), convert::to_timestamp),
    function("duration", Global, (1, 1), convert::to_duration),
    function("contains", Method, (2, 2), text::contains),
    function("startsWith", Method, (2, 2), text::starts_with),
    function("endsWith", Method, (2, 2), text::ends_with),
    function("indexOf", Method, (2, 3), text::index_of),
    function("lastIndexOf", Method, (2, 3), text::last_index_of),
    function("charAt", Method, (2, 2), text::char_at),
    function("substring", Method, (2, 3), text::substring),
    function("lowerAscii", Method, (1, 1), text::lower_ascii),
    function("upperAscii", Method, (1, 1), text::upper_ascii),
    function("trim", Method, (1, 1), text::trim),
    function("reverse", Method, (1, 1), text::reverse),
    function("replace", Method, (3, 4), text::replace),
    function("split", Method, (2, 3), text::split),
    function("join", Method, (1, 2), text::join),
    function("format", Method, (2, 2), format::format),
    function("sort", Method, (1, 1), lists::sort),
    function("distinct", Method, (1, 1), lists::distinct),
    function("slice", Method, (3, 3), lists::slice),
    function("flatten", Method, (1, 2), lists::flatten),
    function("lists.range", Global, (1, 1), lists::range),
    function("math.least", Global, (1, MANY), numbers::least),
    function("math.greatest", Global, (1, MANY), numbers::greatest),
    function("math.ceil", Global, (1, 1), numbers::ceil),
    function("math.floor", Global, (1, 1), numbers::floor),
    function("math.round", Global, (1, 1), numbers::round),
    function("math.trunc", Global, (1, 1), numbers::trunc),
    function("math.abs", Global, (1, 1), numbers::abs),
    function("math.sign", Global, (1, 1), numbers::sign),
    function("math.sqrt", Global, (1, 1), numbers::sqrt),
    function("math.isNaN", Global, (1, 1), numbers::is_nan),
    function("math.isInf", Global, (1, 1), numbers::is_inf),
    function("math.isFinite", Global, (1, 1), numbers::is_finite),
    function("getFullYear", Method, (1, 2), time::full_year),
    function("getMonth", Method, (1, 2), time::month),
    function("getDate", Method, (1, 2), time::date),
    function("getDayOfMonth", Method, (1, 2), time::day_of_month),
    function("getDayOfWeek", Method, (1, 2), time::day_of_week),
    function("getDayOfYear", Method, (1, 2), time::day_of_year),
    function("getHours", Method, (1, 2), time::hours),
    function("getMinutes", Method, (1, 2), time::minutes),
    function("getSeconds", Method, (1, 2), time::seconds),
    function("getMilliseconds", Method, (1, 2), time::milliseconds),
    function("base64.encode", Global, (1, 1), convert::encode),
    function("base64.decode", Global, (1, 1), convert::decode),
];

/// Returns the function that a call means.
pub(crate) fn find(name: &str, style: Style, arguments: usize) -> Option<&'static Function> {
    // Only while an expression is compiled, so an index by name is not worth it.
    FUNCTIONS.iter().find(|function| {
        function.name == name
            && (function.style == style || function.style == Either)
            && (function.arguments.0..=function.arguments.1).contains(&arguments)
    })
}

/// Returns whether a function with this name exists, whatever its arguments are.
pub(crate) fn exists(name: &str) -> bool {
    names().any(|known| known == name)
}

/// Returns the names of all functions.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS.iter().map(|function| function.name)
}

/// The code of a function. The first argument of a method is its target.
pub(crate) type Run = for<'j> fn(&mut Budget, &[Value<'j>]) -> Evaluated<'j>;

pub(crate) struct Function {
    /// The name in an expression.
    pub(crate) name: &'static str,
    /// How it is called.
    pub(super) style: Style,
    /// The least and the largest number of arguments, with the target of a method.
    pub(super) arguments: (usize, usize),
    pub(crate) run: Run,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// How a function is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `name(x)`.
    Global,
    /// `x.name()`.
    Method,
    /// Both.
    Either,
}
