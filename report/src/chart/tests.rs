//! Pictures as a viewer reads them: the boxes of all texts are computed from the
//! file, not from what drew it.

use super::{Axis, Band, Bar, Bars, Chart, Dot, Dots, Figure, Line, Lines, Look, words};
use crate::units::Unit;
use roxmltree::{Document, Node};

const HOSTILE: &str = "</text><script>alert('x')</script>&\"]]>\u{1b}[2J\u{0}\u{ffff}\u{202e}";

/// A text's left, upper, right and lower end.
type Box4 = [f64; 4];

fn number(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

/// An attribute of a node, or of what it stands in.
fn inherited<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    node.ancestors().find_map(|node| node.attribute(name))
}

#[expect(clippy::cast_possible_truncation, reason = "pixels")]
fn boxed(node: Node<'_, '_>) -> Box4 {
    let text = node.text().unwrap().trim();
    let size: f64 = inherited(node, "font-size").unwrap().parse().unwrap();
    let mut width = f64::from(words::width(text, size as i32));
    if node.attribute("font-weight") == Some("bold") {
        width *= 1.1;
    }
    let (x, y) = (number(node, "x"), number(node, "y"));
    let before = match inherited(node, "text-anchor") {
        None | Some("start") => 0.0,
        Some("middle") => width / 2.0,
        _ => width,
    };
    let (half, base) = (size / 2.0, super::canvas::BASELINE * size);
    match node.attribute("transform") {
        None => [
            x - before,
            y - base - half,
            x - before + width,
            y - base + half,
        ],
        Some(turned) => {
            assert!(turned.starts_with("rotate(270"), "{turned}");
            let x = x - base;
            [x - half, y - width / 2.0, x + half, y + width / 2.0]
        }
    }
}

/// Fails where a text lies upon another or beyond the picture; the texts.
fn texts(svg: &str) -> Vec<String> {
    let document = Document::parse(svg).unwrap();
    let root = document.root_element();
    let (width, height) = (number(root, "width"), number(root, "height"));
    let nodes = root
        .descendants()
        .filter(|node| node.tag_name().name() == "text");
    let nodes: Vec<Node<'_, '_>> = nodes.collect();
    let boxes: Vec<Box4> = nodes.iter().map(|node| boxed(*node)).collect();
    let name = |index: usize| nodes[index].text().unwrap().trim();
    for (index, [left, upper, right, lower]) in boxes.iter().copied().enumerate() {
        let inside = left >= 0.0 && upper >= 0.0 && right <= width && lower <= height;
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
            look: look(index),
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
            beside: if index == 2 {
                (0..points).map(at).collect()
            } else {
                Vec::new()
            },
            look: look(index),
            tip: None,
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

fn look(index: usize) -> Look {
    match index {
        4 => Look::Reference,
        index => Look::Subject(index),
    }
}

/// Heaped up, as those of one library are, but for every fourth.
#[expect(clippy::cast_precision_loss, reason = "a test")]
fn dots(count: usize, axis: fn(&str, Unit) -> Axis) -> Chart {
    let dot = |index: usize| {
        let far = if index.is_multiple_of(4) {
            1.0 + index as f64
        } else {
            1.0
        };
        Dot {
            name: match index {
                1 => HOSTILE.to_owned(),
                2 => "a_subject_with_a_name_that_is_longer_than_any_column".to_owned(),
                _ => format!("subject_{index}"),
            },
            at: (4096.0 * far, 9000.0 + 80.0 * (index * 7 % 40) as f64 * far),
            look: look(index),
        }
    };
    Chart {
        file: "dots".to_owned(),
        figure: Figure::Dots(Dots {
            across: axis("Memory for each connection", Unit::Bytes),
            up: axis("CPU time for each message", Unit::Duration),
            dots: (0..count).map(dot).collect(),
        }),
        ..bars(0)
    }
}

fn phases() -> Axis {
    let band = |name: &str, end| Band {
        name: name.to_owned(),
        about: "1.25s".to_owned(),
        end,
    };
    Axis::phases(vec![
        band("warmup", 0.14),
        band("echo", 0.5),
        band("rate", 1.0),
    ])
}

/// Every kind of picture, of so many subjects.
fn every(count: usize) -> Vec<Chart> {
    let mut over_phases = lines(count, 100, phases());
    let mut curves = lines(count, 50, Axis::percentiles());
    for (chart, divisor) in [(&mut over_phases, 7.2e8), (&mut curves, 1e5)] {
        if let Figure::Lines(lines) = &mut chart.figure {
            let points = lines.lines.iter_mut();
            let points = points.flat_map(|line| line.points.iter_mut().chain(&mut line.beside));
            points.for_each(|point| point.0 /= divisor);
        }
    }
    if let Figure::Lines(lines) = &mut curves.figure {
        lines.up = Axis::logarithmic("Latency", Unit::Duration);
    }
    vec![
        bars(count),
        lines(count, 2000, Axis::linear("Time", Unit::Duration)),
        lines(count, 9, Axis::logarithmic("Connections", Unit::Count)),
        over_phases,
        curves,
        dots(count, Axis::linear),
        dots(count, Axis::logarithmic),
    ]
}

/// Where `WSBENCH_PICTURES` names a folder, they are left there to be looked at.
#[test]
fn every_picture_is_small_and_has_no_text_upon_another() {
    let folder = std::env::var_os("WSBENCH_PICTURES").map(std::path::PathBuf::from);
    for count in [1, 5, 12, 40] {
        for (index, chart) in every(count).iter().enumerate() {
            let svg = chart.svg();
            texts(&svg);
            // No report has more lines than twelve, and the yardstick's.
            if index == 0 || index > 4 || count <= 12 {
                assert!(svg.len() < 25_000, "{}: {}", chart.file, svg.len());
            }
            if let Some(folder) = &folder {
                let file = folder.join(format!("{}-{index}-{count}.svg", chart.file));
                std::fs::write(file, svg).unwrap();
            }
        }
    }
}

/// A page holds many pictures: what one says of its look must be true of all, and what is
/// of a subject is found by its name.
#[test]
fn pictures_have_one_style_and_no_identifiers() {
    for chart in every(12) {
        let svg = chart.svg();
        let document = Document::parse(&svg).unwrap();
        let named = |name: &str| {
            document
                .descendants()
                .filter(|node| node.tag_name().name() == name)
                .collect::<Vec<_>>()
        };
        let styles = named("style");
        assert_eq!(styles.len(), 1);
        assert_eq!(styles[0].text(), Some(super::palette::STYLE));
        for node in document.descendants() {
            assert_eq!(node.attribute("id"), None);
            for class in node.attribute("class").unwrap_or("wsb").split(' ') {
                assert!(
                    super::palette::STYLE.contains(&format!(".{class}{{")),
                    "{class}"
                );
            }
        }
        let groups = named("g");
        let of = groups
            .iter()
            .filter(|node| node.attribute("data-subject") == Some(&*words::printable(HOSTILE)));
        let of: Vec<_> = of.collect();
        assert_eq!(of.len(), 1, "{}", chart.file);
        let tip = of[0].first_element_child().unwrap();
        assert_eq!(tip.tag_name().name(), "title");
        assert!(tip.text().unwrap().starts_with(&words::printable(HOSTILE)));
    }
}

#[test]
fn forty_subjects_are_told_apart_by_colour_and_marker() {
    let looks = (0..42).map(|index| {
        let look = Look::Subject(index);
        (look.class(), look.turn() % 6)
    });
    let looks: std::collections::BTreeSet<_> = looks.collect();
    assert_eq!(looks.len(), 42);
}

#[test]
fn no_text_lies_upon_another_with_few_subjects_or_many() {
    let time = || Axis::linear("Time", Unit::Duration);
    for count in [1, 2, 5, 17, 40] {
        let found = texts(&bars(count).svg());
        assert!(found.iter().any(|text| text == "subject_0"), "{found:?}");
        for points in [1, 3, 2000] {
            texts(&lines(count, points, time()).svg());
        }
        texts(&lines(count, 9, Axis::logarithmic("Connections", Unit::Count)).svg());
    }
}

#[test]
fn a_picture_of_more_subjects_is_higher_and_no_wider() {
    let size = |chart: &Chart| {
        let svg = chart.svg();
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
    let svg = chart.svg();
    let document = Document::parse(&svg).unwrap();
    let tags = document.descendants().filter(Node::is_element);
    let tags: std::collections::BTreeSet<&str> = tags.map(|node| node.tag_name().name()).collect();
    let drawn = ["desc", "g", "path", "rect", "style", "svg", "text", "title"];
    assert!(tags.iter().all(|tag| drawn.contains(tag)), "{tags:?}");
    assert!(
        texts(&svg)
            .iter()
            .any(|text| text.starts_with("</text><script>"))
    );
}

#[test]
fn a_picture_says_what_it_is_to_those_who_do_not_see_it() {
    let svg = bars(2).svg();
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
            look: Look::Subject(0),
        };
        let mut chart = bars(0);
        chart.figure = Figure::Bars(Bars {
            axis: Axis::linear("x", Unit::Count),
            bars: values.iter().map(bar).collect(),
        });
        let drawn = chart.svg();
        let line = Line {
            name: "a".to_owned(),
            points: values.iter().map(|value| (*value, *value)).collect(),
            beside: Vec::new(),
            look: Look::Subject(0),
            tip: None,
        };
        chart.figure = Figure::Lines(Lines {
            across: Axis::logarithmic("x", Unit::Count),
            up: Axis::linear("y", Unit::Bytes),
            lines: vec![line],
        });
        for svg in [drawn, chart.svg()] {
            Document::parse(&svg).unwrap();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }
}
