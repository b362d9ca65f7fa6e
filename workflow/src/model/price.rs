//! What tokens cost.

use std::str::FromStr;

use counterproof_sessions::event::Usage;

/// The price of a million tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Price {
    pub input: f64,
    pub output: f64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid price `{0}`: write the prices of a million prompt and completion tokens, such as `2.50,10`")]
pub struct InvalidPrice(String);

impl FromStr for Price {
    type Err = InvalidPrice;

    fn from_str(text: &str) -> Result<Self, InvalidPrice> {
        let number = |text: &str| text.trim().parse().ok().filter(|price: &f64| price.is_finite() && *price >= 0.0);
        let (input, output) = text.split_once(',').ok_or_else(|| InvalidPrice(text.to_owned()))?;
        match (number(input), number(output)) {
            (Some(input), Some(output)) => Ok(Self { input, output }),
            _ => Err(InvalidPrice(text.to_owned())),
        }
    }
}

impl Price {
    /// Returns the cost of a call. A count that the server did not state costs nothing.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let tokens = |count: Option<u64>| count.unwrap_or(0) as f64 / 1e6;
        tokens(usage.prompt_tokens) * self.input + tokens(usage.completion_tokens) * self.output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_has_two_numbers() {
        let price: Price = " 2.5 ,10".parse().unwrap();
        assert_eq!(price, Price { input: 2.5, output: 10.0 });
        for text in ["", "1", "1,", "1,2,3", "-1,2", "nan,1", "1,inf", "a,b"] {
            assert_eq!(text.parse::<Price>(), Err(InvalidPrice(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn a_cost_is_that_of_the_known_counts() {
        let price = Price { input: 2.0, output: 8.0 };
        let cost = |prompt, completion| price.cost(&Usage::new(prompt, completion, None));
        assert!((cost(Some(500_000), Some(250_000)) - 3.0).abs() < 1e-9);
        assert!((cost(None, Some(1_000_000)) - 8.0).abs() < 1e-9);
        assert!(cost(None, None) < 1e-9);
    }
}
