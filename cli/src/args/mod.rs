//! What several verbs take from the command line.

pub mod legacy;
