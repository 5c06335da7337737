//! Finds the libraries to compare. scripts/install-bench-deps installs them.

fn main() {
    for library in ["libcrypto", "libgcrypt", "libsodium", "botan-2", "libxxhash"] {
        if let Err(error) = pkg_config::probe_library(library) {
            panic!("{library}: {error}\nrun scripts/install-bench-deps");
        }
    }
}
