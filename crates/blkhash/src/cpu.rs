//! What this CPU can do. This is the only place that mints tokens: a kernel asks for one, so that
//! calling it is safe by its type.

use std::fmt;
use std::sync::OnceLock;

/// A group of instructions that a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Feature {
    /// The SHA-256 instructions of x86, with SSE4.1.
    Sha,
    /// AVX2.
    Avx2,
    /// AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Feature {
    /// Every feature, the narrowest first.
    pub const ALL: [Self; 3] = [Self::Sha, Self::Avx2, Self::Avx512];

    /// Its name, as `BLKHASH_CPU_DISABLE` has it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha => "sha",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// Whether the CPU and the system have it.
    pub fn is_present(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        return match self {
            Self::Sha => {
                is_x86_feature_detected!("sha")
                    && is_x86_feature_detected!("sse4.1")
                    && is_x86_feature_detected!("ssse3")
            }
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            Self::Avx512 => {
                is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512bw")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
            }
        };
        #[cfg(not(target_arch = "x86_64"))]
        false
    }

    /// Whether it was switched off with `BLKHASH_CPU_DISABLE=sha,avx2,avx512`.
    pub fn is_disabled(self) -> bool {
        static DISABLED: OnceLock<String> = OnceLock::new();
        let disabled =
            DISABLED.get_or_init(|| std::env::var("BLKHASH_CPU_DISABLE").unwrap_or_default());
        disabled.split(',').any(|name| name.trim() == self.name())
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Defines a token: who has one runs on a CPU that has the feature.
macro_rules! tokens {
    ($($(#[$doc:meta])* $token:ident;)*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) struct $token(());

            impl $token {
                /// The token, if the CPU has the feature and nobody switched it off.
                pub(crate) fn detect() -> Option<Self> {
                    let feature = Feature::$token;
                    (feature.is_present() && !feature.is_disabled()).then_some(Self(()))
                }
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
tokens! {
    /// Proves `sha`, `sse4.1` and `ssse3`.
    Sha;
    /// Proves `avx2`.
    Avx2;
    /// Proves `avx512f`, `avx512bw`, `avx512dq` and `avx512vl`.
    Avx512;
}
