//! The macro that declares an enum of stable codes together with their texts and meanings.

/// Declares an enum with `ALL`, `as_str`, `meaning` and `parse`. Each line is `Variant "code" "Meaning."`; the meaning is
/// also the documentation of the variant.
macro_rules! code_enum {
    ($(#[$doc:meta])* $name:ident { $($variant:ident $code:literal $meaning:literal)* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name {
            $(#[doc = $meaning] $variant,)*
        }

        impl $name {
            /// All codes, in the order of the documentation.
            pub const ALL: &'static [$name] = &[$($name::$variant,)*];

            /// The stable kebab-case code, as files contain it.
            pub const fn as_str(self) -> &'static str {
                match self { $($name::$variant => $code,)* }
            }

            /// What the code means, in one sentence.
            pub const fn meaning(self) -> &'static str {
                match self { $($name::$variant => $meaning,)* }
            }

            /// Parses a code from a file; `None` for a code that this version does not know.
            pub fn parse(code: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|known| known.as_str() == code)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}

pub(crate) use code_enum;
