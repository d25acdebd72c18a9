//! What several pipes are made of. Each pipe has a file of its own beside this folder.

pub(crate) mod blocks;
pub(crate) mod by_schema;
pub(crate) mod class;
pub(crate) mod expression;
pub(crate) mod held;
pub(crate) mod join;
pub(crate) mod keys;
pub(crate) mod lasting;
pub(crate) mod length;
pub(crate) mod lists;
pub(crate) mod number;
pub(crate) mod numbers;
pub(crate) mod pad;
pub(crate) mod pairs;
pub(crate) mod parts;
pub(crate) mod replay;
pub(crate) mod rows;
pub(crate) mod sift;
pub(crate) mod stack;
pub(crate) mod wider;
