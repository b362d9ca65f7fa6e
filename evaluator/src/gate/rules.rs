//! The rules of the gate in `counterproof.toml`: the `[gate]` table and the tables for single risks, tags and suites below it.
//! Evaluation is in `evaluate`.

use std::collections::BTreeMap;
use std::fmt;

use super::usage_rules::UsageLimits;
use counterproof_artifact::evaluation::GateScope;
use counterproof_artifact::{RiskLevel, Share};
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// What a rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Measure {
    /// Cases that got worse.
    Regressed,
    /// Cases that new could not run and the baseline could: a budget of its own, apart from regressions.
    Broken,
    /// Cases that got worse or broke in one run per side, which may be chance.
    Unconfirmed,
    /// Cases that neither side could run.
    StillBroken,
    /// Cases with an artifact that breaks the contract.
    Invalid,
    /// Cases that only one side has.
    Unpaired,
    /// Cases that only the baseline has.
    Missing,
    /// Cases that only new has.
    Added,
    /// Cases that differ, and nothing says for better or worse.
    Changed,
    /// Cases that differ, with too few runs to tell whether by more than chance.
    Undecided,
    /// Cases that differ no more than the baseline differs from itself.
    Noisy,
    /// Cases that got better.
    Improved,
    /// Cases that new could run and the baseline could not.
    Recovered,
    /// Cases in which new does not meet what the cases file expects, whether or not the baseline did.
    Unmet,
    /// Cases in which new does not meet a hard expectation in any run.
    Must,
    /// Cases with a high-risk action that was added, removed or changed.
    HighRiskChanged,
    /// Cases with a made-up argument of a high-risk action.
    Fabricated,
    /// Cases with an action whose evidence is a failed result.
    FailedEvidence,
    /// Cases with a signal that the baseline does not have.
    Signals,
    /// Cases in which both sides answered: with fewer than the limit, the gate says that it has not enough data.
    Compared,
}

impl Measure {
    /// All measures, in the order in which they are shown.
    pub const ALL: [Measure; 20] = [
        Measure::Regressed,
        Measure::Broken,
        Measure::Unconfirmed,
        Measure::StillBroken,
        Measure::Invalid,
        Measure::Unpaired,
        Measure::Missing,
        Measure::Added,
        Measure::Changed,
        Measure::Undecided,
        Measure::Noisy,
        Measure::Improved,
        Measure::Recovered,
        Measure::Unmet,
        Measure::Must,
        Measure::HighRiskChanged,
        Measure::Fabricated,
        Measure::FailedEvidence,
        Measure::Signals,
        Measure::Compared,
    ];

    /// The stable name of its rules.
    pub const fn code(self) -> &'static str {
        match self {
            Measure::Regressed => "regressed",
            Measure::Broken => "broken",
            Measure::Unconfirmed => "unconfirmed",
            Measure::StillBroken => "still_broken",
            Measure::Invalid => "invalid",
            Measure::Unpaired => "unpaired",
            Measure::Missing => "missing",
            Measure::Added => "added",
            Measure::Changed => "changed",
            Measure::Undecided => "undecided",
            Measure::Noisy => "noisy",
            Measure::Improved => "improved",
            Measure::Recovered => "recovered",
            Measure::Unmet => "unmet",
            Measure::Must => "must",
            Measure::HighRiskChanged => "high_risk_changed",
            Measure::Fabricated => "fabricated",
            Measure::FailedEvidence => "failed_evidence",
            Measure::Signals => "signals",
            Measure::Compared => "compared",
        }
    }

    /// Its name in the configuration.
    const fn key(self) -> &'static str {
        match self {
            Measure::Compared => "min_compared",
            other => other.code(),
        }
    }

    fn of_key(key: &str) -> Option<Self> {
        Measure::ALL.into_iter().find(|measure| measure.key() == key)
    }
}

/// What a limit may be, in messages.
const LIMIT: &str = "a whole number of zero or more, a share such as \"2 %\" or 0.02, or \"none\"";

/// The default share of the cases that need an answer on both sides.
const MIN_COMPARED_PERCENT: &str = "80 %";

/// How many are allowed; of [`Measure::Compared`], how many are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Any number: the count is for information.
    None,
    /// So many.
    Count(u64),
    /// This share of the cases that the rule looks at.
    Share(Share),
    /// Not significantly more than the baseline on the same cases. Only for [`Measure::Unmet`].
    Baseline,
}

/// The `[gate]` table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateRules {
    /// Whether the combined measure may fall over all cases together.
    pub suite_fell: Limit,
    /// High-risk actions and arguments that no run of the baseline shows, tested over all cases. Only the limit 0, which lets
    /// the test decide, and none are allowed.
    pub unseen_high_risk: Limit,
    /// How much slower, costlier and longer the cases may get.
    pub usage: UsageLimits,
    overall: BTreeMap<Measure, Limit>,
    scopes: Vec<ScopeRules>,
}

/// The rules for some of the cases, such as `[gate.tag.money]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeRules {
    /// Which cases.
    pub scope: GateScope,
    /// The limits by measure; other measures have no rule in this scope.
    pub limits: BTreeMap<Measure, Limit>,
}

impl Default for GateRules {
    fn default() -> Self {
        let zero = Limit::Count(0);
        let overall = [
            (Measure::Regressed, zero),
            (Measure::Broken, zero),
            (Measure::Unconfirmed, Limit::None),
            (Measure::StillBroken, Limit::None),
            (Measure::Invalid, zero),
            (Measure::Unpaired, zero),
            (Measure::Changed, Limit::None),
            (Measure::Undecided, Limit::None),
            (Measure::Unmet, Limit::Baseline),
            (Measure::Must, zero),
            (Measure::HighRiskChanged, Limit::None),
            (Measure::Fabricated, zero),
            (Measure::FailedEvidence, zero),
            (Measure::Compared, MIN_COMPARED_PERCENT.parse().map_or(Limit::Count(1), Limit::Share)),
        ];
        let overall = overall.into_iter().collect();
        Self { suite_fell: zero, unseen_high_risk: zero, usage: UsageLimits::default(), overall, scopes: Vec::new() }
    }
}

impl GateRules {
    /// The same with another limit for all cases.
    #[must_use]
    pub fn with(mut self, measure: Measure, limit: Limit) -> Self {
        self.overall.insert(measure, limit);
        self
    }

    /// The limits for all cases.
    pub const fn overall(&self) -> &BTreeMap<Measure, Limit> {
        &self.overall
    }

    /// The limits for some of the cases: in the order in which the file's reader gives its tables, by name.
    pub fn scopes(&self) -> &[ScopeRules] {
        &self.scopes
    }

    /// The first scope that needs a cases file.
    pub fn needs_cases(&self) -> Option<&GateScope> {
        let known_from_cases = |scope: &&GateScope| matches!(scope, GateScope::Tag(_) | GateScope::Suite(_));
        self.scopes.iter().map(|limits| &limits.scope).find(known_from_cases)
    }
}

impl<'de> Deserialize<'de> for Limit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Written;

        impl Visitor<'_> for Written {
            type Value = Limit;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(LIMIT)
            }

            fn visit_u64<E: Error>(self, count: u64) -> Result<Limit, E> {
                Ok(Limit::Count(count))
            }

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

        deserializer.deserialize_any(Written)
    }
}

/// A name within a table of limits.
enum Key {
    Measure(Measure),
    SuiteFell,
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
    "signals",
    "min_compared",
    "suite_fell",
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
                            limits.overall.insert(measure, absolute(&mut map)?);
                        }
                        Key::SuiteFell => limits.suite_fell = absolute(&mut map)?,
                        Key::UnseenHighRisk => limits.unseen_high_risk = tested(&mut map)?,
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
                if limits.scopes.iter().any(|scope| scope.limits.values().any(|limit| *limit == Limit::Baseline)) {
                    return Err(A::Error::custom(BASELINE_ONLY_FOR_UNMET));
                }
                Ok(limits)
            }
        }

        deserializer.deserialize_map(Table)
    }
}

const BASELINE_ONLY_FOR_UNMET: &str = "only `unmet` over all cases can have the limit \"baseline\"";

/// A limit other than the baseline.
fn absolute<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Limit, A::Error> {
    match map.next_value()? {
        Limit::Baseline => Err(A::Error::custom(BASELINE_ONLY_FOR_UNMET)),
        limit => Ok(limit),
    }
}

/// A limit of a rule that a test decides.
fn tested<'de, A: MapAccess<'de>>(map: &mut A) -> Result<Limit, A::Error> {
    match map.next_value()? {
        limit @ (Limit::None | Limit::Count(0)) => Ok(limit),
        _ => Err(A::Error::custom("a test decides this rule: write 0, or \"none\" to switch it off")),
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
                while let Some(scope) = map.next_entry()? {
                    scopes.push(scope);
                }
                Ok(Scopes(scopes))
            }
        }

        deserializer.deserialize_map(Tables(std::marker::PhantomData))
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
            ("regressed = \"baseline\"", BASELINE_ONLY_FOR_UNMET),
            ("[tag.money]\nunmet = \"baseline\"", BASELINE_ONLY_FOR_UNMET),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(said), "{text}: {error}");
        }
    }

    #[test]
    fn the_names_in_messages_are_the_names_that_are_read() {
        assert_eq!(SCOPE_KEYS, Measure::ALL.map(Measure::key));
    }
}
