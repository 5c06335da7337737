//! The object of `--progress=json`.

use blkrecord::{Name, record};

record! {
    /// The state of a run, with `--progress=json`.
    pub struct Progress<'a> {
        /// the image that is read
        pub name: Name<'a>,
        /// number of the image, from 1 on
        pub image: u64,
        /// number of images, in check mode of lines; null if unknown
        pub images: Option<u64>,
        /// bytes of this image's content that are done, with holes; of a copy, those written and those read back
        pub done: u64,
        /// what `done` is at the end; null for a pipe until its end
        pub total: Option<u64>,
        /// bytes of `done` that were data
        pub data: u64,
        /// of a copy that is read back, the pass that runs: `write` or `read-back`
        #[absent("for everything else")]
        pub pass: Option<&'static str>,
        /// time since the run began
        pub seconds: f64,
        /// estimated time until the end of the run; null if unknown
        pub left: Option<f64>,
    }
}
