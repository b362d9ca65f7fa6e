//! Reads the rules of the gate from `counterproof.toml`: the `[gate]` table, and the tables for single risks, tags and suites
//! below it.

use std::collections::BTreeMap;
use std::fmt;

use counterproof_artifact::evaluation::GateScope;
use counterproof_artifact::{RiskLevel, Share};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::rules::{GateRules, GrowthLimit, Limit, Measure, ScopeRules};

/// What a limit may be, in messages.
const LIMIT: &str = "a whole number of zero or more, a share such as \"2 %\" or 0.02, or \"none\"";

/// What a limit on growth may be, in messages.
const GROWTH: &str = "0, a share such as \"20 %\" or 0.2, or \"none\"";

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LimitVisitor;

        impl Visitor<'_> for LimitVisitor {
            type Value = Limit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(LIMIT)
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<Limit, E> {
                Ok(Limit::Count(count))
            }

            // The TOML parser passes all integers as `i64`.
            fn visit_i64<E: Error>(self, count: i64) -> Result<Limit, E> {
                u64::try_from(count).map(Limit::Count).map_err(|_| E::custom(format!("expected {LIMIT}")))
            }

            fn visit_f64<E: Error>(self, share: f64) -> Result<Limit, E> {
                // `1.0` would be all cases, and `1` is one case: too easy to confuse.
                if share >= 1.0 {
                    return Err(E::custom("ambiguous: write `1` for one case, or `\"100 %\"` for all cases"));
                }
                Share::try_from(share).map(Limit::Share).map_err(|_| E::custom(format!("expected {LIMIT}")))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Limit, E> {
                match text {
                    "none" => return Ok(Limit::None),
                    "baseline" => return Ok(Limit::Baseline),
                    _ => {}
                }
                text.parse().map(Limit::Share).map_err(|_| E::custom(format!("expected {LIMIT}")))
            }
        }

        deserializer.deserialize_any(LimitVisitor)
    }
}

enum Key {
    Measure(Measure),
    SuiteFell,
    Lost,
    UnseenHighRisk,
    Slower,
    Costlier,
    Longer,
    Risk,
    Tag,
    Suite,
}

/// The names within the `[gate]` table.
const KEYS: &[&str] = &[
    "regressed",
    "broken",
    "unconfirmed",
    "still_broken",
    "invalid",
    "unpaired",
    "missing",
    "added",
    "added_failed",
    "not_comparable",
    "changed",
    "undecided",
    "noisy",
    "improved",
    "recovered",
    "unmet",
    "must",
    "high_risk_changed",
    "fabricated",
    "failed_evidence",
    "repeated_call",
    "signals",
    "behaviour_changed",
    "text_faults",
    "secret_leaked",
    "min_compared",
    "suite_fell",
    "lost",
    "unseen_high_risk",
    "slower",
    "costlier",
    "longer",
    "risk",
    "tag",
    "suite",
];

/// The names within the table of a scope: the same without the scopes.
const SCOPE_KEYS: &[&str] = KEYS.split_at(Measure::ALL.len()).0;

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        match key.as_str() {
            "suite_fell" => Ok(Key::SuiteFell),
            "lost" => Ok(Key::Lost),
            "unseen_high_risk" => Ok(Key::UnseenHighRisk),
            "slower" => Ok(Key::Slower),
            "costlier" => Ok(Key::Costlier),
            "longer" => Ok(Key::Longer),
            "risk" => Ok(Key::Risk),
            "tag" => Ok(Key::Tag),
            "suite" => Ok(Key::Suite),
            key => Measure::of_key(key).map(Key::Measure).ok_or_else(|| D::Error::unknown_field(key, KEYS)),
        }
    }
}

impl<'de> Deserialize<'de> for Measure {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        Measure::of_key(&key).ok_or_else(|| D::Error::unknown_field(&key, SCOPE_KEYS))
    }
}

impl<'de> Deserialize<'de> for GateRules {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = GateRules;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of gate rules")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<GateRules, A::Error> {
                let mut limits = GateRules::default();
                while let Some(key) = map.next_key()? {
                    match key {
                        Key::Measure(Measure::Unmet) => {
                            limits.overall.insert(Measure::Unmet, map.next_value()?);
                        }
                        Key::Measure(measure) => {
                            limits.overall.insert(measure, map.next_value::<Absolute>()?.0);
                        }
                        Key::SuiteFell => limits.suite_fell = map.next_value::<Absolute>()?.0,
                        Key::Lost => limits.lost = map.next_value::<Tested>()?.0,
                        Key::UnseenHighRisk => limits.unseen_high_risk = map.next_value::<Tested>()?.0,
                        Key::Slower => limits.usage.slower = map.next_value()?,
                        Key::Costlier => limits.usage.costlier = map.next_value()?,
                        Key::Longer => limits.usage.longer = map.next_value()?,
                        Key::Risk => {
                            limits.scopes.extend(map.next_value::<Scopes<RiskLevel>>()?.with(GateScope::Risk));
                        }
                        Key::Tag => limits.scopes.extend(map.next_value::<Scopes<String>>()?.with(GateScope::Tag)),
                        Key::Suite => limits.scopes.extend(map.next_value::<Scopes<String>>()?.with(GateScope::Suite)),
                    }
                }
                Ok(limits)
            }
        }

        deserializer.deserialize_map(Table)
    }
}

/// A limit that is not a test. In a scope, none is: its cases are too few for one.
struct Absolute(Limit);

// Errors of a value, and not of its table, have the position of the value.
impl<'de> Deserialize<'de> for Absolute {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Limit::deserialize(deserializer)? {
            Limit::Baseline => Err(D::Error::custom(format!(
                "only `unmet` over all cases can have the limit \"baseline\"; expected {LIMIT}"
            ))),
            limit => Ok(Self(limit)),
        }
    }
}

/// A limit of a rule that a test decides.
struct Tested(Limit);

impl<'de> Deserialize<'de> for Tested {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Limit::deserialize(deserializer)? {
            limit @ (Limit::None | Limit::Count(0)) => Ok(Self(limit)),
            _ => Err(D::Error::custom("a test decides this rule; expected 0, or \"none\" to switch it off")),
        }
    }
}

/// The tables below `risk`, `tag` or `suite`, in their order.
struct Scopes<K>(Vec<(K, BTreeMap<Measure, Limit>)>);

impl<K> Scopes<K> {
    fn with(self, scope: impl Fn(K) -> GateScope) -> impl Iterator<Item = ScopeRules> {
        self.0.into_iter().map(move |(name, limits)| ScopeRules { scope: scope(name), limits })
    }
}

impl<'de, K: Deserialize<'de>> Deserialize<'de> for Scopes<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Tables<K>(std::marker::PhantomData<K>);

        impl<'de, K: Deserialize<'de>> Visitor<'de> for Tables<K> {
            type Value = Scopes<K>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of gate rules for each name, such as `[gate.tag.money]`")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scopes<K>, A::Error> {
                let mut scopes = Vec::new();
                while let Some((name, limits)) = map.next_entry::<_, BTreeMap<Measure, Absolute>>()? {
                    scopes.push((name, limits.into_iter().map(|(measure, limit)| (measure, limit.0)).collect()));
                }
                Ok(Scopes(scopes))
            }
        }

        deserializer.deserialize_map(Tables(std::marker::PhantomData))
    }
}

impl<'de> Deserialize<'de> for GrowthLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct GrowthVisitor;

        impl Visitor<'_> for GrowthVisitor {
            type Value = GrowthLimit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(GROWTH)
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<GrowthLimit, E> {
                match count {
                    0 => self.visit_f64(0.0),
                    _ => Err(E::custom(format!("the limit is a growth, not a number of cases: expected {GROWTH}"))),
                }
            }

            fn visit_i64<E: Error>(self, count: i64) -> Result<GrowthLimit, E> {
                u64::try_from(count)
                    .map_err(|_| E::custom(format!("expected {GROWTH}")))
                    .and_then(|it| self.visit_u64(it))
            }

            fn visit_f64<E: Error>(self, share: f64) -> Result<GrowthLimit, E> {
                Share::try_from(share).map(GrowthLimit::Share).map_err(|_| E::custom(format!("expected {GROWTH}")))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<GrowthLimit, E> {
                if text == "none" {
                    return Ok(GrowthLimit::None);
                }
                text.parse().map(GrowthLimit::Share).map_err(|_| E::custom(format!("expected {GROWTH}")))
            }
        }

        deserializer.deserialize_any(GrowthVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<GateRules, String> {
        toml::from_str(text).map_err(|error| error.to_string())
    }

    fn share(text: &str) -> Limit {
        Limit::Share(text.parse().unwrap())
    }

    #[test]
    fn what_is_not_named_keeps_its_default() {
        let limits = read("regressed = \"2 %\"\nunmet = 3\nbroken = \"none\"").unwrap();
        let expected = GateRules::default()
            .with(Measure::Regressed, share("2 %"))
            .with(Measure::Unmet, Limit::Count(3))
            .with(Measure::Broken, Limit::None);
        assert_eq!(limits, expected);
    }

    #[test]
    fn a_share_is_a_percentage_or_a_fraction() {
        assert_eq!(read("regressed = 0.02").unwrap(), read("regressed = \"2 %\"").unwrap());
    }

    #[test]
    fn a_scope_has_only_the_limits_that_it_names() {
        let limits =
            read("[risk.high]\nregressed = 0\n[tag.money]\nmin_compared = \"90 %\"\n[suite.\"a b\"]\nunmet = 1");
        let limits = limits.unwrap();
        let of = |scope, measure, limit| ScopeRules { scope, limits: BTreeMap::from([(measure, limit)]) };
        assert_eq!(limits.overall(), GateRules::default().overall());
        let expected = [
            of(GateScope::Risk(RiskLevel::High), Measure::Regressed, Limit::Count(0)),
            of(GateScope::Suite("a b".to_owned()), Measure::Unmet, Limit::Count(1)),
            of(GateScope::Tag("money".to_owned()), Measure::Compared, share("90 %")),
        ];
        assert_eq!(limits.scopes(), expected);
        assert_eq!(limits.needs_cases(), Some(&GateScope::Suite("a b".to_owned())));
    }

    #[test]
    fn a_name_or_a_value_that_means_nothing_is_refused() {
        for (text, said) in [
            ("regresed = 0", "unknown field `regresed`"),
            ("[tag.money]\nregresed = 0", "unknown field `regresed`"),
            ("[tag.money]\nrisk = 0", "unknown field `risk`"),
            ("[risk.hihg]\nregressed = 0", "unknown variant `hihg`"),
            ("regressed = -1", LIMIT),
            ("regressed = -0.1", LIMIT),
            ("regressed = 1.0", "ambiguous: write `1` for one case, or `\"100 %\"` for all cases"),
            ("regressed = \"2\"", LIMIT),
            ("regressed = \"200 %\"", LIMIT),
            ("regressed = \"baseline\"", "only `unmet` over all cases"),
            ("[tag.money]\nunmet = \"baseline\"", "only `unmet` over all cases"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn the_names_in_messages_are_the_names_that_are_read() {
        assert_eq!(SCOPE_KEYS, Measure::ALL.iter().copied().map(Measure::key).collect::<Vec<_>>());
    }
}
