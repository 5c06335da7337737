//! Functions that run before `main`.

/// Calls an `extern "C"` function before `main`, and so before the runtime of Rust starts. The function may make system calls,
/// and neither allocates nor uses the runtime.
#[cfg(target_vendor = "apple")]
#[macro_export]
macro_rules! before_main {
    ($function:ident) => {
        #[used]
        #[unsafe(link_section = "__DATA,__mod_init_func")]
        static BEFORE_MAIN: extern "C" fn() = $function;
    };
}

/// Calls an `extern "C"` function before `main`, and so before the runtime of Rust starts. The function may make system calls,
/// and neither allocates nor uses the runtime.
#[cfg(not(target_vendor = "apple"))]
#[macro_export]
macro_rules! before_main {
    ($function:ident) => {
        #[used]
        #[unsafe(link_section = ".init_array")]
        static BEFORE_MAIN: extern "C" fn() = $function;
    };
}
