//! Sets linker options of the library, and warns if panics cannot be caught.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor == "apple") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libblkhash.0.dylib");
    } else {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libblkhash.so.0");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,relro,-z,now");
    }
    // blake3 has a function for its own C code on ARM, which Rust exports. A linker that takes the last of several
    // version scripts, as zig's does, can be given what to export.
    println!("cargo::rerun-if-env-changed=BLKHASH_VERSION_SCRIPT");
    if let Ok(path) = std::env::var("BLKHASH_VERSION_SCRIPT") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={path}");
    }
    if std::env::var("CARGO_CFG_PANIC").is_ok_and(|panic| panic == "abort") {
        println!("cargo::warning=a panic will end the program: build with --profile capi");
    }
}
