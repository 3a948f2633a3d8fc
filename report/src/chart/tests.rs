//! Pictures as a viewer reads them: the boxes of all texts are computed from the
//! file, not from what drew it.

use super::{Axis, Bar, Bars, Chart, Figure, Line, Lines, words};
use crate::units::Unit;
use roxmltree::{Document, Node};

const HOSTILE: &str = "</text><script>alert('x')</script>&\"]]>\u{1b}[2J\u{0}\u{ffff}\u{202e}";

/// A text's left, upper, right and lower end.
type Box4 = [i32; 4];

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

#[expect(clippy::cast_possible_truncation, reason = "pixels")]
fn boxed(node: Node<'_, '_>) -> Box4 {
    let text = node.text().unwrap().trim();
    let size = number(node, "font-size").round() as i32;
    let mut width = words::width(text, size);
    if node.attribute("font-weight") == Some("bold") {
        width = width * 11 / 10;
    }
    let (x, y) = (number(node, "x") as i32, number(node, "y") as i32);
    let before = match node.attribute("text-anchor").unwrap() {
        "start" => 0,
        "middle" => width / 2,
        _ => width,
    };
    let half = size / 2 + 1;
    match node.attribute("transform") {
        None => [x - before, y - half, x - before + width, y + half],
        Some(turned) => {
            assert!(turned.starts_with("rotate(270"), "{turned}");
            [x - half, y - width / 2, x + half, y + width / 2]
        }
    }
}

/// Fails where a text lies upon another or beyond the picture; the texts.
fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let root = document.root_element();
    #[expect(clippy::cast_possible_truncation, reason = "pixels")]
    let (width, height) = (number(root, "width") as i32, number(root, "height") as i32);
    let nodes: Vec<Node<'_, '_>> = root
        .children()
        .filter(|node| node.has_tag_name("text") || node.tag_name().name() == "text")
        .collect();
    let boxes: Vec<Box4> = nodes.iter().map(|node| boxed(*node)).collect();
    let name = |index: usize| nodes[index].text().unwrap().trim();
    for (index, [left, upper, right, lower]) in boxes.iter().copied().enumerate() {
        let inside = left >= 0 && upper >= 0 && right <= width && lower <= height;
        assert!(inside, "{} leaves the picture", name(index));
        for (other, [l, u, r, d]) in boxes.iter().copied().enumerate().skip(index + 1) {
            let apart = right <= l || r <= left || lower <= u || d <= upper;
            assert!(apart, "{} lies upon {}", name(index), name(other));
        }
    }
    (0..nodes.len())
        .map(|index| name(index).to_owned())
        .collect()
}

#[expect(clippy::cast_precision_loss, reason = "a test")]
fn bars(count: usize) -> Chart {
    let bar = |index: usize| {
        let value = 1e9 / (1.0 + index as f64 * 0.37);
        Bar {
            name: match index {
                1 => HOSTILE.to_owned(),
                2 => "a_subject_with_a_name_that_is_longer_than_any_column".to_owned(),
                _ => format!("subject_{index}"),
            },
            value: (index != 3).then_some(value),
            span: index
                .is_multiple_of(2)
                .then_some((value * 0.9, value * 1.2)),
            is_reference: index == 4,
        }
    };
    Chart {
        file: "bars".to_owned(),
        title: "Time of a round trip: 100 connections, messages of 10240 bytes".to_owned(),
        about: "Bars are medians over 3 rounds, whiskers the lowest and the highest round; less is better. \
                The grey bar is the client beside the origin, without a relay between them."
            .to_owned(),
        figure: Figure::Bars(Bars {
            axis: Axis::linear("Elapsed / round trips", Unit::Duration),
            bars: (0..count).map(bar).collect(),
        }),
    }
}

#[expect(clippy::cast_precision_loss, reason = "a test")]
fn lines(count: usize, points: usize, across: Axis) -> Chart {
    let line = |index: usize| {
        let at = |point: usize| {
            let x = 10f64 + 7.0 * point as f64;
            let wave = (x / 40.0 + index as f64).sin().abs();
            (
                x * 1e6,
                (60.0 + wave * 20.0 - (index % 5) as f64 * 3.0) * 1_048_576.0,
            )
        };
        // One in four ends early.
        let points = if index % 4 == 3 { points / 2 } else { points };
        Line {
            name: if index == 1 {
                HOSTILE.to_owned()
            } else {
                format!("strategy_{index}")
            },
            points: (0..points).map(at).collect(),
        }
    };
    Chart {
        file: "lines".to_owned(),
        title: "Memory over time".to_owned(),
        about: "The round with the median duration of each strategy.".to_owned(),
        figure: Figure::Lines(Lines {
            across,
            up: Axis::linear("Resident memory", Unit::Bytes),
            lines: (0..count).map(line).collect(),
        }),
    }
}

#[test]
fn no_text_lies_upon_another_with_few_subjects_or_many() {
    let time = || Axis::linear("Time", Unit::Duration);
    for count in [1, 2, 5, 17, 40] {
        let found = texts(&bars(count).svg().unwrap());
        assert!(found.iter().any(|text| text == "subject_0"), "{found:?}");
        for points in [1, 3, 2000] {
            texts(&lines(count, points, time()).svg().unwrap());
        }
        texts(
            &lines(count, 9, Axis::logarithmic("Connections", Unit::Count))
                .svg()
                .unwrap(),
        );
    }
}

#[test]
fn a_picture_of_more_subjects_is_higher_and_no_wider() {
    let size = |chart: &Chart| {
        let svg = chart.svg().unwrap();
        let document = Document::parse(&svg).unwrap();
        ["width", "height"].map(|name| number(document.root_element(), name))
    };
    let time = || Axis::linear("Time", Unit::Duration);
    for [few, many] in [
        [size(&bars(5)), size(&bars(40))],
        [size(&lines(5, 9, time())), size(&lines(40, 9, time()))],
    ] {
        assert!(
            few[0] == many[0] && few[1] * 1.5 < many[1],
            "{few:?} {many:?}"
        );
    }
}

#[test]
fn a_hostile_name_is_a_text_and_nothing_else() {
    let chart = Chart {
        title: HOSTILE.to_owned(),
        about: HOSTILE.to_owned(),
        ..bars(3)
    };
    let svg = chart.svg().unwrap();
    let document = Document::parse(&svg).unwrap();
    let tags = document.descendants().filter(Node::is_element);
    let tags: std::collections::BTreeSet<&str> = tags.map(|node| node.tag_name().name()).collect();
    let drawn = ["desc", "line", "polyline", "rect", "svg", "text", "title"];
    assert!(tags.iter().all(|tag| drawn.contains(tag)), "{tags:?}");
    assert!(
        texts(&svg)
            .iter()
            .any(|text| text.starts_with("</text><script>"))
    );
}

#[test]
fn a_picture_says_what_it_is_to_those_who_do_not_see_it() {
    let svg = bars(2).svg().unwrap();
    let document = Document::parse(&svg).unwrap();
    let root = document.root_element();
    assert_eq!(root.attribute("role"), Some("img"));
    let title = "Time of a round trip: 100 connections, messages of 10240 bytes";
    assert_eq!(root.attribute("aria-label"), Some(title));
    let of = |tag: &str| root.children().find(|node| node.tag_name().name() == tag);
    assert_eq!(of("title").and_then(|node| node.text()), Some(title));
    assert!(
        of("desc")
            .and_then(|node| node.text())
            .unwrap()
            .contains("less is better")
    );
}

/// Nothing at all, nothing but zeros, what is no number, what is less than nothing.
#[test]
fn whatever_the_figures_are_there_is_a_picture() {
    for values in [
        vec![],
        vec![0.0; 3],
        vec![f64::NAN, f64::INFINITY, 1.0],
        vec![-5.0, 1e300],
    ] {
        let bar = |value: &f64| Bar {
            name: "a".to_owned(),
            value: Some(*value),
            span: Some((*value, *value)),
            is_reference: false,
        };
        let mut chart = bars(0);
        chart.figure = Figure::Bars(Bars {
            axis: Axis::linear("x", Unit::Count),
            bars: values.iter().map(bar).collect(),
        });
        let drawn = chart.svg().unwrap();
        let line = Line {
            name: "a".to_owned(),
            points: values.iter().map(|value| (*value, *value)).collect(),
        };
        chart.figure = Figure::Lines(Lines {
            across: Axis::logarithmic("x", Unit::Count),
            up: Axis::linear("y", Unit::Bytes),
            lines: vec![line],
        });
        for svg in [drawn, chart.svg().unwrap()] {
            Document::parse(&svg).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
