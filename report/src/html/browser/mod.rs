//! The page in a real Chromium: what it shows, does and refuses. Where there is no
//! browser a test says so in a line; see `script/browser_setup.sh`.

mod chromium;

use crate::answer;
use crate::files::Names;
use crate::table::Grid;
use crate::{Report, example};
use chromium::{Browser, Page};
use wsbench_schema::{Level, TrialRecord, Verdict};

fn html(report: &Report) -> String {
    super::document(&report.document(), &Names::default()).unwrap()
}

/// Three servers, one that never started and the floor, over two rounds and two loads.
fn trials() -> Vec<TrialRecord> {
    let mut trials = Vec::new();
    for (name, pace) in [("axum", 100), ("quick", 80), ("slow", 190), ("floor", 60)] {
        for round in 1..=2 {
            trials.push(example::paced(name, round, pace + u64::from(round)));
        }
    }
    let mut other: Vec<TrialRecord> = trials.clone();
    for trial in &mut other {
        trial.load.payload_bytes = 65_536;
        trial.load_hash = trial.load.hash();
    }
    let reason = "no listener on 10001-10010 after 10s";
    trials.push(example::failed("broken", 1, "start", reason));
    trials.extend(other);
    trials
}

fn report() -> Report {
    let trials = trials();
    let mut plan = example::plan(&["axum", "quick", "slow", "broken", "floor"], 2);
    plan.loads = vec![trials[0].load.clone(), trials[9].load.clone()];
    let mut lax = example::examination("quick");
    let failing = example::finding("control", "ping of 126 bytes", Level::Should, Verdict::Fail);
    lax.findings.push(failing);
    let found = vec![example::examination("axum"), lax];
    Report::new(&plan, &trials)
        .unwrap()
        .with_examinations(found)
}

/// What the tests ask of a page, in its own language.
const VERBS: &str = include_str!("verbs.js");

fn open(page: &mut Page<'_>, html: &str) {
    page.open(html);
    page.eval(VERBS);
}

fn texts(page: &mut Page<'_>, expression: &str) -> Vec<String> {
    let value = page.eval(expression);
    serde_json::from_value(value).unwrap_or_else(|cause| panic!("{expression}: {cause}"))
}

#[test]
fn tables_sort_filter_and_compare() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut page = browser.page(1280, false);
    // A picture with a mark of one of them, however others are drawn.
    let picture = "<main id=\"main\"><svg id=\"drawn\" width=\"40\" height=\"20\" aria-label=\"x\"><title>x</title>\
        <g data-subject=\"slow\"><title>slow: 5</title><rect width=\"40\" height=\"20\"/></g></svg>";
    let html = html(&report()).replace("<main id=\"main\">", picture);
    open(&mut page, &html);
    let names = |page: &mut Page<'_>| texts(page, "cells(table('Compact'), 'Framework')");
    let as_written = ["quick", "axum", "slow", "broken", "floor (yardstick)"];
    assert_eq!(names(&mut page), as_written);

    // By number and not by letter, both ways and back; what is missing stays last.
    page.eval("press(table('Compact'), 'TPS')");
    let by_tps = ["floor (yardstick)", "quick", "axum", "slow", "broken"];
    assert_eq!(names(&mut page), by_tps);
    let sorted = "table('Compact').tHead.querySelector('[aria-sort]').ariaSort";
    assert_eq!(page.eval(sorted), "descending");
    page.eval("press(table('Compact'), 'TPS')");
    let by_tps = ["slow", "axum", "quick", "floor (yardstick)", "broken"];
    assert_eq!(names(&mut page), by_tps);
    assert_eq!(page.eval(sorted), "ascending");
    page.eval("press(table('Compact'), 'TPS')");
    assert_eq!(names(&mut page), as_written);
    assert_eq!(
        page.eval("table('Compact').querySelector('[aria-sort]')"),
        serde_json::Value::Null
    );
    // 9.99 ms is less than 10.1 ms, and a keyboard does what a pointer does.
    page.eval("table('Compact').tHead.rows[0].cells[column(table('Compact'), 'TP50')].querySelector('button').focus()");
    page.press("Enter", "\r");
    assert_eq!(names(&mut page)[..3], ["slow", "axum", "quick"]);
    page.press("Enter", "\r");
    assert_eq!(
        names(&mut page)[..4],
        ["floor (yardstick)", "quick", "axum", "slow"]
    );
    page.press("Enter", "\r");

    // Relative to a subject: its own figures stay, every other is a multiple of them.
    page.eval("choose('baseline', 'axum')");
    let tps = texts(&mut page, "cells(table('Compact'), 'TPS')");
    assert_eq!(tps, ["1.25×", "98525", "0.53×", "-", "1.65×"]);
    // Nothing is a multiple of nothing.
    let failed = texts(&mut page, "cells(table('Compact'), 'Failed')");
    assert_eq!(failed[..2], ["=", "0"]);
    let spans = texts(&mut page, "cells(table('BenchEcho'), 'TPS min-max')");
    assert_eq!(spans[0], "1.24×-1.25×");
    page.eval("choose('baseline', 'nothing')");
    let tps = texts(&mut page, "cells(table('Compact'), 'TPS')");
    assert_eq!(tps[..2], ["122704", "98525"]);

    // Under the pointer a mark tells what it is.
    let at = page.eval(
        "(() => { const mark = document.getElementById('drawn'); mark.scrollIntoView({ block: 'center' }); \
         const box = mark.getBoundingClientRect(); return [box.x + 5, box.y + 5]; })()",
    );
    page.point(at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    page.expect("!document.getElementById('tip').hidden");
    let tip = page.eval("document.getElementById('tip').textContent");
    assert_eq!(tip, "slow: 5");

    // Of who is left out neither rows nor marks are seen, in any table or picture.
    let marks = "document.querySelector('#drawn g').getClientRects().length";
    assert_eq!(page.eval(marks), 1);
    page.eval("tick('slow'); tick('quick')");
    assert_eq!(names(&mut page), ["axum", "broken", "floor (yardstick)"]);
    let seen = "[...document.querySelectorAll('[data-subject=\"slow\"]')].filter((mark) => mark.getClientRects().length).length";
    assert_eq!(page.eval(seen), 0);
    page.eval("choose('filter', 'flo -bro')");
    assert_eq!(names(&mut page), ["floor (yardstick)"]);
    page.eval("choose('filter', '-floor')");
    assert_eq!(names(&mut page), ["axum", "broken"]);
    let told = page.eval("document.getElementById('told').textContent");
    assert_eq!(told, "2 of 5 subjects are shown. ");

    // A link to a row shows it, whatever was hidden.
    page.eval("location.hash = table('BenchRate', 1).querySelector('[data-subject=slow]').id");
    page.expect(
        "(() => { const box = document.querySelector(':target').getBoundingClientRect(); \
         return box.height > 0 && box.top >= 0 && box.bottom <= innerHeight; })()",
    );
    assert_eq!(names(&mut page), as_written);

    // Under the pointer the exact figure.
    page.eval("scrollTo({ top: 0, behavior: 'instant' }); table('Compact').scrollIntoView({ behavior: 'instant', block: 'center' })");
    let at = page.eval(
        "(() => { const box = lines(table('Compact'))[1].cells[column(table('Compact'), 'TPS')].getBoundingClientRect(); return [box.x + 5, box.y + 5]; })()",
    );
    page.point(at[0].as_f64().unwrap(), at[1].as_f64().unwrap());
    page.expect("!document.getElementById('tip').hidden");
    let tip = page.eval("document.getElementById('tip').textContent");
    assert_eq!(tip, "axum\nTPS: 98525\n98,524.558 a second");
    assert_eq!(page.complaints(), [""; 0]);
}

/// What would run, fetch, or end what it stands in, if anything let it.
const HOSTILE: [&str; 8] = [
    "<script>window.ran = 1</script>",
    "\"><img src=x onerror=window.ran=2>",
    "' onmouseover='window.ran=3",
    "</style><script>window.ran = 4</script>",
    "</title></svg><svg onload=window.ran=5>",
    "javascript:window.ran=6",
    "{{ 7 * 7 }} ${window.ran=7} <!-- ]]>",
    "a\u{0}b\u{1b}[31m\n\u{202e}</tr></table><iframe src=//example.org>",
];

#[test]
fn names_and_reasons_of_others_run_nothing() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut trials = Vec::new();
    let mut found = Vec::new();
    for (index, text) in HOSTILE.iter().enumerate() {
        trials.push(example::paced(text, 1, 100 + index as u64));
        trials.push(example::failed(&format!("failed {text}"), 1, "start", text));
        let mut lax = example::examination(text);
        let failing = example::finding("control", text, Level::Should, Verdict::Fail);
        lax.findings.push(failing);
        found.push(lax);
    }
    for trial in &mut trials {
        trial.subject.version = HOSTILE[0].into();
        trial.machine.kernel = HOSTILE[1].into();
        trial.marks.insert(HOSTILE[3].into(), HOSTILE[1].into());
    }
    let relays = HOSTILE.map(|text| example::relayed(text, 1, 100));
    let plan = example::plan(&[], 1);
    let websocket = Report::new(&plan, &trials)
        .unwrap()
        .with_examinations(found);
    let relays = Report::new(&plan, &relays).unwrap();
    for (report, subjects) in [(websocket, 2 * HOSTILE.len()), (relays, HOSTILE.len())] {
        let mut page = browser.page(1280, false);
        open(&mut page, &html(&report));
        for name in texts(
            &mut page,
            "[...document.querySelectorAll('#pick label')].map((l) => l.textContent)",
        ) {
            let name = serde_json::Value::from(name).to_string();
            page.eval(&format!(
                "tick({name}); choose('baseline', {name}); tick({name})"
            ));
        }
        page.eval("for (const link of document.querySelectorAll('tbody th a')) link.click()");
        assert_eq!(
            page.eval("document.querySelectorAll('#pick input').length"),
            subjects
        );
        assert_eq!(page.eval("typeof window.ran"), "undefined");
        let made = "document.querySelectorAll('img, iframe, [onload], [onerror], [onmouseover], a[href^=javascript]').length";
        assert_eq!(page.eval(made), 0);
        assert_eq!(page.eval("document.scripts.length"), 1);
        assert_eq!(page.complaints(), [""; 0]);
        // What they wrote is there to be read.
        let text = "document.querySelector('main').textContent.includes('<script>window.ran = 1</script>')";
        assert_eq!(page.eval(text), true);
    }
}

/// Should the template ever let one through, the page's policy does not.
#[test]
fn a_script_that_is_not_ours_is_refused() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut page = browser.page(1280, false);
    let with = "<main id=\"main\"><script>window.ran = 1</script><img src=\"http://127.0.0.1:9/\">";
    let html = html(&report()).replace("<main id=\"main\">", with);
    open(&mut page, &html);
    assert_eq!(page.eval("typeof window.ran"), "undefined");
    let complaints = page.complaints();
    assert!(complaints.len() >= 2, "{complaints:?}");
}

#[test]
fn without_a_script_everything_is_there_to_be_read() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut page = browser.page(1280, false);
    page.without_script();
    page.open(&html(&report()));
    page.screenshot("without-script", false);
    let count = |page: &mut Page<'_>, what: &str| {
        page.eval(&format!("[...document.querySelectorAll('{what}')].filter((e) => e.getClientRects().length).length"))
    };
    assert_eq!(count(&mut page, "button, input, select"), 0);
    // What is said in short stands on cards.
    let document = report().document();
    let tables = document.grids().filter(|(part, _)| part.id != answer::FILE);
    let tables: Vec<&Grid> = tables.map(|(_, grid)| grid).collect();
    let rows = tables.iter().flat_map(|grid| &grid.rows);
    let of_subjects = rows.filter(|row| row.subject.is_some()).count();
    assert!(tables.len() >= 8 && of_subjects >= 36);
    assert_eq!(count(&mut page, "main table"), tables.len());
    assert_eq!(count(&mut page, "main tbody tr[data-subject]"), of_subjects);
    assert_eq!(page.complaints(), [""; 0]);
}

/// What a reader with a small window, other eyes or no mouse needs.
#[test]
fn it_fits_a_phone_and_is_accessible_in_light_and_dark() {
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let axe = std::fs::read_to_string(chromium::fetched().join("axe.min.js"));
    let pages = [
        ("websocket", html(&report())),
        ("transfer", html(&transfers())),
    ];
    for (name, html) in &pages {
        for (width, is_dark) in [(1280, false), (1280, true), (390, false), (390, true)] {
            let mut page = browser.page(width, is_dark);
            open(&mut page, html);
            let scheme = if is_dark { "dark" } else { "light" };
            page.screenshot(&format!("{name}-{width}-{scheme}"), false);
            page.screenshot(&format!("{name}-{width}-{scheme}-whole"), true);
            let widths = page.eval("[document.documentElement.scrollWidth, innerWidth]");
            assert_eq!(
                widths[0], widths[1],
                "{name}, {width}: the page scrolls sideways"
            );
            let wrong = texts(&mut page, OUTLINE);
            assert_eq!(wrong, [""; 0], "{name}, {width}");
            let unlike = texts(&mut page, CONTRAST);
            assert_eq!(unlike, [""; 0], "{name}, {width}, {scheme}");
            // It takes its time: either scheme, and either width.
            if let (Ok(axe), true) = (&axe, is_dark == (width < 600)) {
                page.eval(axe);
                assert_eq!(texts(&mut page, AXE), [""; 0], "{name}, {width}, {scheme}");
            }
            assert_eq!(page.complaints(), [""; 0]);
        }
    }
    // Nor does the list of subjects need more room than there is.
    let mut page = browser.page(700, false);
    open(&mut page, &html(&large()));
    page.eval("document.getElementById('pick').open = true");
    page.screenshot("subjects-700", false);
    let widths = page.eval("[document.documentElement.scrollWidth, innerWidth]");
    assert_eq!(widths[0], widths[1], "the page scrolls sideways");
    // Printed, no table is cut at the edge of the sheet, and no button is left.
    for (name, html) in &pages {
        let mut page = browser.page(1040, true);
        open(&mut page, html);
        page.as_printed();
        page.screenshot(&format!("{name}-printed"), true);
        let widths = page.eval("[document.documentElement.scrollWidth, innerWidth]");
        assert_eq!(widths[0], widths[1], "{name}: wider than a sheet of A4");
        let seen = "document.getElementById('filter').getClientRects().length";
        assert_eq!(page.eval(seen), 0);
    }
    // With the keyboard alone: to the first table's first button, which shows that it is there.
    let mut page = browser.page(1280, false);
    open(&mut page, &pages[0].1);
    for _ in 0..60 {
        page.press("Tab", "");
        if page.eval("document.activeElement.closest('thead') !== null") == true {
            break;
        }
    }
    let outline = "getComputedStyle(document.activeElement).outlineStyle";
    assert_eq!(page.eval(outline), "solid");
    page.press("Enter", "\r");
    assert_eq!(
        page.eval("document.activeElement.closest('th').ariaSort"),
        "ascending"
    );
}

/// Headings in order, one of the first level; tables with headers that say of what; no
/// name twice.
const OUTLINE: &str = include_str!("outline.js");
/// Every text against what is behind it.
const CONTRAST: &str = include_str!("contrast.js");
/// What an established judge of accessibility finds.
const AXE: &str = "axe.run(document, { resultTypes: ['violations'] }).then((found) => \
    found.violations.map((one) => `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 120)).join(' | ')}`))";

fn transfers() -> Report {
    let trials: Vec<TrialRecord> = ["stack", "pool", "heap"]
        .iter()
        .flat_map(|name| {
            let rounds = 1..=2;
            rounds.map(|round| {
                example::transferred(name, round, 100 + u64::from(round) * name.len() as u64)
            })
        })
        .collect();
    let mut plan = example::plan(&["stack", "pool", "heap"], 2);
    plan.loads = vec![trials[0].load.clone()];
    Report::new(&plan, &trials).unwrap()
}

/// Forty subjects under ten loads.
fn large() -> Report {
    let names: Vec<String> = (1..=40).map(|n| format!("framework-number-{n}")).collect();
    let mut trials = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let one = example::paced(name, 1, 60 + 3 * index as u64);
        for payload in 1..=10 {
            for round in 1..=2 {
                let mut trial = one.clone();
                trial.round = round;
                trial.load.payload_bytes = 1000 * payload;
                trial.load_hash = trial.load.hash();
                trials.push(trial);
            }
        }
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut plan = example::plan(&names, 2);
    plan.loads = trials[..20]
        .iter()
        .step_by(2)
        .map(|trial| trial.load.clone())
        .collect();
    Report::new(&plan, &trials).unwrap()
}

#[test]
fn forty_subjects_under_ten_loads_are_small_and_quick_enough() {
    let html = html(&large());
    assert!(html.len() < 3_000_000, "{} bytes", html.len());
    let Some(mut browser) = Browser::start() else {
        return;
    };
    let mut page = browser.page(1280, false);
    open(&mut page, &html);
    page.screenshot("large-1280", false);
    // What takes a tenth of a second on a quiet machine may take long on a busy one.
    let took = page.eval(
        "(() => { const started = performance.now(); press(table('BenchEcho', 9), 'TPS'); \
         choose('filter', 'number-1'); choose('baseline', 'framework-number-1'); \
         document.body.offsetHeight; return performance.now() - started; })()",
    );
    assert!(took.as_f64().unwrap() < 10_000.0, "{took} ms");
    let tps = texts(&mut page, "cells(table('BenchEcho', 9), 'TPS')");
    assert_eq!(tps.len(), 11);
    assert_eq!(tps[1], "0.69×");
    assert_eq!(page.complaints(), [""; 0]);
}
