//! The features of this CPU. Only this module creates tokens. A kernel takes one as an argument, so
//! that calling it is safe by its type.

use std::fmt;
use std::sync::OnceLock;

/// Defines [`Feature`] and the tokens. A row has a feature, its name, its architecture, the macro
/// that detects instructions there, and the instructions. A feature that contains others names them
/// after `with`.
macro_rules! features {
    ($(
        $(#[$doc:meta])*
        $feature:ident: $name:literal, $arch:literal, $detect:ident!($($instructions:tt),+)
            $(, with $($part:ident),+)?;
    )*) => {
        /// A group of instructions that a kernel needs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Feature {
            $($(#[$doc])* $feature,)*
        }

        impl Feature {
            /// All features, the narrowest first.
            pub const ALL: &'static [Self] = &[$(Self::$feature),*];

            /// Returns the name, as used in `BLKHASH_CPU_DISABLE`.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$feature => $name,)*
                }
            }

            /// Returns the features that this one contains.
            pub(crate) const fn parts(self) -> &'static [Self] {
                match self {
                    $(Self::$feature => &[$($(Self::$part),+)?],)*
                }
            }

            /// Returns whether the CPU and the operating system support it.
            pub fn is_present(self) -> bool {
                $(
                    #[cfg(target_arch = $arch)]
                    if self == Self::$feature {
                        return $(std::arch::$detect!($instructions))&&+;
                    }
                )*
                false
            }
        }

        $(
            #[doc = concat!("Proves", $(" `", $instructions, "`"),+, ".")]
            #[cfg(target_arch = $arch)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub(crate) struct $feature(());

            #[cfg(target_arch = $arch)]
            impl $feature {
                pub(crate) const FEATURE: Option<Feature> = Some(Feature::$feature);

                /// Returns the token if the CPU has the feature and it is not disabled.
                pub(crate) fn detect() -> Option<Self> {
                    let feature = Feature::$feature;
                    (feature.is_present() && !feature.is_disabled()).then_some(Self(()))
                }
            }
        )*
    };
}

features! {
    /// The SHA-256 instructions of x86, with SSE4.1.
    Sha: "sha", "x86_64", is_x86_feature_detected!("sha", "sse4.1", "ssse3");
    /// AVX2.
    Avx2: "avx2", "x86_64", is_x86_feature_detected!("avx2");
    /// AVX-512 F, BW, DQ and VL.
    Avx512: "avx512", "x86_64",
        is_x86_feature_detected!("avx512f", "avx512bw", "avx512dq", "avx512vl");
    /// The SHA-256 instructions with the registers of AVX-512.
    ShaAvx512: "sha-avx512", "x86_64", is_x86_feature_detected!(
        "sha", "sse4.1", "ssse3", "avx512f", "avx512bw", "avx512dq", "avx512vl"
    ), with Sha, Avx512;
    /// The SHA-256 instructions of AArch64.
    Sha2: "sha2", "aarch64", is_aarch64_feature_detected!("sha2");
    /// The SHA-512 instructions of AArch64, which Rust detects together with the ones of SHA-3.
    Sha512: "sha512", "aarch64", is_aarch64_feature_detected!("sha3");
}

impl Feature {
    /// Returns whether the feature or one of its parts was disabled, as with
    /// `BLKHASH_CPU_DISABLE=sha,avx2,avx512`.
    pub fn is_disabled(self) -> bool {
        static DISABLED: OnceLock<String> = OnceLock::new();
        let disabled =
            DISABLED.get_or_init(|| std::env::var("BLKHASH_CPU_DISABLE").unwrap_or_default());
        let is_named = |feature: &Self| disabled.split(',').any(|it| it.trim() == feature.name());
        is_named(&self) || self.parts().iter().any(is_named)
    }
}

impl fmt::Display for Feature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The token of kernels that run on any CPU. It proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Portable(());

impl Portable {
    pub(crate) const FEATURE: Option<Feature> = None;

    /// Returns the token.
    #[allow(clippy::unnecessary_wraps, reason = "as in other features")]
    pub(crate) fn detect() -> Option<Self> {
        Some(Self(()))
    }
}

/// Returns the twelve bytes of the vendor's name, or `None` on other architectures than x86-64.
pub(crate) fn vendor() -> Option<[u8; 12]> {
    static VENDOR: OnceLock<Option<[u8; 12]>> = OnceLock::new();
    *VENDOR.get_or_init(|| {
        let [_, ebx, ecx, edx] = cpuid(0)?;
        let mut vendor = [0; 12];
        for (bytes, word) in vendor.as_chunks_mut().0.iter_mut().zip([ebx, edx, ecx]) {
            *bytes = word.to_le_bytes();
        }
        Some(vendor)
    })
}

/// Returns the family of this CPU, with the extended one added. Its meaning depends on the vendor.
pub(crate) fn family() -> Option<u32> {
    static FAMILY: OnceLock<Option<u32>> = OnceLock::new();
    *FAMILY.get_or_init(|| {
        let [version, ..] = cpuid(1)?;
        let (base, extended) = (version >> 8 & 0xf, version >> 20 & 0xff);
        Some(if base == 0xf { base + extended } else { base })
    })
}

/// Returns a leaf of CPUID. In a virtual machine each takes several microseconds.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
fn cpuid(leaf: u32) -> Option<[u32; 4]> {
    // SAFETY: every x86-64 has CPUID.
    #[allow(unused_unsafe, reason = "the function is unsafe in older versions")]
    let found = unsafe { std::arch::x86_64::__cpuid(leaf) };
    Some([found.eax, found.ebx, found.ecx, found.edx])
}

#[cfg(not(target_arch = "x86_64"))]
fn cpuid(_leaf: u32) -> Option<[u32; 4]> {
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_that_of_the_kernel() {
        let Ok(info) = std::fs::read_to_string("/proc/cpuinfo") else { return };
        let field = |name: &str| {
            let mut fields = info.lines().filter_map(|line| line.split_once(':'));
            fields.find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim().to_owned())
        };
        assert_eq!(field("vendor_id").unwrap().as_bytes(), vendor().unwrap());
        assert_eq!(field("cpu family").unwrap(), family().unwrap().to_string());
    }
}
