//! Functions that run before `main`.

/// Calls an `extern "C"` function before `main`, and so before the runtime of Rust starts. The function may make system calls,
/// and neither allocates nor uses the runtime.
#[macro_export]
macro_rules! before_main {
    ($function:ident) => {
        #[used]
        #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
        #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
        static BEFORE_MAIN: extern "C" fn() = $function;
    };
}
