//! Open images: the options for that, and what is said about them. All commands share it.

pub mod about;
pub mod advice;
pub mod args;
pub mod contents;
pub mod filter;
pub mod input;
pub mod names;
pub mod notes;
pub mod open;
mod option;
