//! The page as text: what a browser is not needed for.

use super::{SCRIPT, STYLE};
use crate::files::Names;
use crate::{Report, example};
use wsbench_schema::RunPlan;

fn page(plan: &RunPlan, trials: &[wsbench_schema::TrialRecord]) -> String {
    let report = Report::new(plan, trials).unwrap();
    super::document(&report.document(), &Names::default()).unwrap()
}

/// Without what is the same in every page.
fn own(html: &str) -> String {
    html.replace(STYLE, "[style]")
        .replace(SCRIPT, "[script]")
        .replace(&super::hash(), "[hash]")
}

#[test]
fn the_page_of_a_run() {
    let trials = [
        example::paced("axum", 1, 100),
        example::paced("floor", 1, 60),
        example::failed("a \"b\" <c>", 1, "start", "no listener & <no> 'hope'"),
    ];
    let plan = example::plan(&["axum", "floor", "a \"b\" <c>"], 1);
    insta::assert_snapshot!(own(&page(&plan, &trials)));
}

#[test]
fn a_run_without_records_has_a_page() {
    let html = page(&example::plan(&["axum"], 1), &[]);
    assert!(html.contains("No server was examined."), "{html}");
}

/// Otherwise it would end where it does not, or its hash would be of something else.
#[test]
fn script_and_style_stand_in_the_page_as_they_are() {
    for text in ["</script", "<!--", "]]>", "\r"] {
        assert!(!SCRIPT.contains(text), "{text}");
    }
    for text in ["</style", "<!--", "@import", "url("] {
        assert!(!STYLE.contains(text), "{text}");
    }
    let html = page(&example::plan(&[], 1), &[]);
    assert!(html.contains(&format!("<script>{SCRIPT}</script>")));
}
