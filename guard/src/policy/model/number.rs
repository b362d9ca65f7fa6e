//! Numbers of JSON, compared by value: `1` equals `1.0`, and integers beyond 2^53 keep their digits.

use std::cmp::Ordering;

use serde_json::{Number, Value};

/// Compares two numbers by value.
pub(crate) fn compare(a: &Number, b: &Number) -> Option<Ordering> {
    match (integer(a), integer(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (Some(a), None) => compare_with_double(a, b.as_f64()?),
        (None, Some(b)) => compare_with_double(b, a.as_f64()?).map(Ordering::reverse),
        (None, None) => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

fn integer(number: &Number) -> Option<i128> {
    number.as_u64().map(i128::from).or_else(|| number.as_i64().map(i128::from))
}

/// Compares exactly: the whole part first, which decides unless both are equal.
fn compare_with_double(integer: i128, double: f64) -> Option<Ordering> {
    // Conversion to an integer saturates, and integers of JSON are far from its limits.
    #[expect(clippy::cast_possible_truncation, reason = "the fraction is compared after the whole part")]
    let whole = double.trunc() as i128;
    let fraction = 0.0_f64.partial_cmp(&double.fract())?;
    Some(integer.cmp(&whole).then(fraction))
}

/// True if two values are equal. Numbers are compared by value, and the order of keys does not matter.
pub(crate) fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => compare(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_compared_by_value() {
        assert!(equal(&json!({"a": [1, 2.0], "b": null}), &json!({"b": null, "a": [1.0, 2]})));
        assert!(!equal(&json!(9_007_199_254_740_993_u64), &json!(9_007_199_254_740_992.0)));
        assert!(!equal(&json!(1), &json!("1")));
        assert!(!equal(&json!(1.5), &json!(1)));
        assert!(equal(&json!(0), &json!(-0.0)));
        let order = |a: Value, b: Value| compare(a.as_number().unwrap(), b.as_number().unwrap()).unwrap();
        assert_eq!(order(json!(-1), json!(-1.5)), Ordering::Greater);
        assert_eq!(order(json!(u64::MAX), json!(1e300)), Ordering::Less);
        assert_eq!(order(json!(-1e300), json!(i64::MIN)), Ordering::Less);
    }

    proptest! {
        #[test]
        fn the_order_of_small_numbers_is_that_of_doubles(a in -1000_i32..1000, b in -4000_i32..4000) {
            let b = f64::from(b) / 4.0;
            let (x, y) = (Number::from(a), Number::from_f64(b).unwrap());
            prop_assert_eq!(compare(&x, &y), f64::from(a).partial_cmp(&b));
            prop_assert_eq!(compare(&y, &x), b.partial_cmp(&f64::from(a)));
        }
    }
}
