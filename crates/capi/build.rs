//! Sets linker options of the library, and warns if panics cannot be caught.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libblkhash.so.0");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,relro,-z,now");
    if std::env::var("CARGO_CFG_PANIC").is_ok_and(|panic| panic == "abort") {
        println!("cargo::warning=a panic will end the program: build with --profile capi");
    }
}
