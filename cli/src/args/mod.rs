//! What several verbs take from the command line.

pub mod legacy;
pub mod load;
pub mod refusal;
pub mod units;
