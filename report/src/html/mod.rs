//! The report as one HTML file: no network, no other file, and no script needed to
//! read it. It knows the [`Document`] and nothing of records.
//!
//! The template escapes every text. What it does not escape is our own: the style
//! sheet, the script, and pictures, whose makers escape what they put in. A policy in
//! the page lets no other script run, should that ever fail.
//!
//! Pictures stand in the page itself: what is of a subject in them is told by
//! `data-subject`, with its name made printable, and what is under the pointer by a
//! `<title>` within. Their styles and names must not be those of the page or of
//! another picture.

mod view;

#[cfg(test)]
mod browser;
#[cfg(test)]
mod tests;

use crate::ReportError;
use crate::document::Document;
use crate::files::Names;
use askama::Template as _;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use sha2::{Digest as _, Sha256};

const STYLE: &str = include_str!("../../templates/report.css");
const SCRIPT: &str = include_str!("../../templates/report.js");

/// The page.
///
/// # Errors
/// If a picture is refused.
pub fn document(document: &Document, names: &Names<'_>) -> Result<String, ReportError> {
    let page = view::Page::of(document, names);
    let html = page.render();
    // The template writes to memory and fails nowhere else.
    html.map_err(|cause| ReportError::Page {
        cause: cause.to_string(),
    })
}

/// By which a browser knows our script.
fn hash() -> String {
    BASE64.encode(Sha256::digest(SCRIPT))
}

/// What a browser may do with the page: show it, and run the one script that is ours.
/// Pictures have styles of their own.
fn policy() -> String {
    let hash = hash();
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{hash}'; \
         base-uri 'none'; form-action 'none'"
    )
}
