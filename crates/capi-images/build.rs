//! Sets linker options of the library, and warns if panics cannot be caught.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|vendor| vendor == "apple") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-install_name,@rpath/libblksum.0.dylib");
    } else {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libblksum.so.0");
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,relro,-z,now");
    }
    // As in crates/capi/build.rs.
    println!("cargo::rerun-if-env-changed=BLKSUM_VERSION_SCRIPT");
    if let Ok(path) = std::env::var("BLKSUM_VERSION_SCRIPT") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,--version-script={path}");
    }
    if std::env::var("CARGO_CFG_PANIC").is_ok_and(|panic| panic == "abort") {
        println!("cargo::warning=a panic will end the program: build with --profile capi");
    }
}
