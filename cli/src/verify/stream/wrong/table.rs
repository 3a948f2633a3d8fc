//! For each case a fault that it must find.

use super::super::Kind;
use super::Fault;

/// Path of the case, and the fault.
pub fn made_for(kind: Kind) -> Vec<(String, Fault)> {
    let mut rows = bytes();
    rows.extend(match kind {
        Kind::Relay => relay(),
        Kind::Echo => echo(),
    });
    rows.extend(left());
    let rows = rows.into_iter();
    rows.map(|(path, fault)| (path.to_owned(), fault)).collect()
}

fn bytes() -> Vec<(&'static str, Fault)> {
    vec![
        ("bytes/0 bytes", Fault::NoFin),
        ("bytes/1 bytes", Fault::LosesLastByte),
        ("bytes/2 bytes", Fault::LosesLastByte),
        ("bytes/32767 bytes", Fault::LosesLastByte),
        ("bytes/32768 bytes", Fault::LosesLastByte),
        ("bytes/32769 bytes", Fault::LosesLastByte),
        ("bytes/65535 bytes", Fault::Duplicates),
        ("bytes/65536 bytes", Fault::Duplicates),
        ("bytes/65537 bytes", Fault::LosesLastByte),
        ("bytes/1048576 bytes", Fault::SwapsSegments),
        ("bytes/random segments", Fault::SwapsSegments),
        ("bytes/segments of one byte", Fault::Duplicates),
        ("bytes/burst of segments of one byte", Fault::TrustsEagain),
        ("bytes/small reads of large writes", Fault::DropsRest),
        ("bytes/small reads when all has ended", Fault::LosesLastByte),
        ("bytes/long stream", Fault::FlipsBehind(2 << 20)),
    ]
}

fn relay() -> Vec<(&'static str, Fault)> {
    vec![
        ("bytes/long streams both ways", Fault::FlipsBehind(2 << 20)),
        ("bytes/origin speaks first", Fault::Lazy),
        ("ends/client ends first", Fault::ClosesBoth),
        ("ends/origin ends first", Fault::ClosesBoth),
        (
            "ends/client ends while the origin does not read",
            Fault::ResetsAtFin,
        ),
        (
            "ends/origin ends while the client does not read",
            Fault::ResetsAtFin,
        ),
        ("ends/client resets", Fault::IgnoresReset),
        ("ends/origin resets", Fault::IgnoresReset),
        ("ends/client resets: passed on", Fault::FinForReset),
        ("ends/origin resets: passed on", Fault::FinForReset),
        (
            "ends/client resets with bytes under way",
            Fault::IgnoresReset,
        ),
        (
            "ends/origin resets with bytes under way",
            Fault::IgnoresReset,
        ),
        (
            "ends/client resets with bytes under way: passed on",
            Fault::FinForReset,
        ),
        (
            "ends/origin resets with bytes under way: passed on",
            Fault::FinForReset,
        ),
        (
            "ends/client resets after the origin has ended",
            Fault::IgnoresReset,
        ),
        (
            "ends/origin resets after the client has ended",
            Fault::IgnoresReset,
        ),
        ("stall/origin does not read", Fault::ReadsWithoutBound),
        ("stall/client does not read", Fault::ReadsWithoutBound),
        ("stall/origin reads again", Fault::HangsAfterStall),
        ("stall/client reads again", Fault::HangsAfterStall),
        (
            "stall/origin reads slowly what comes in segments of one byte",
            Fault::HangsAfterStall,
        ),
        (
            "stall/client reads slowly what comes in segments of one byte",
            Fault::HangsAfterStall,
        ),
        (
            "stall/origin does not read: other connections",
            Fault::HeadOfLine,
        ),
        (
            "stall/client does not read: other connections",
            Fault::HeadOfLine,
        ),
        (
            "stall/origin does not read: the other way",
            Fault::WayBlocksWay,
        ),
        (
            "stall/client does not read: the other way",
            Fault::WayBlocksWay,
        ),
        ("stall/memory", Fault::ReadsWithoutBound),
        ("many/at once", Fault::LimitedTo(40)),
        ("many/full at once", Fault::HeadOfLine),
        ("many/reset when full", Fault::KeepsPipe),
        ("origin/refused", Fault::HoldsRefused),
        ("origin/refused: passed on", Fault::FinForReset),
        ("origin/refused: others", Fault::DiesOnRefusal),
        ("origin/late", Fault::TrustsEagain),
        ("origin/late", Fault::HastyConnect),
        ("origin/closes while the client writes", Fault::IgnoresReset),
        ("origin/resets while the client writes", Fault::IgnoresReset),
    ]
}

fn echo() -> Vec<(&'static str, Fault)> {
    vec![
        (
            "ends/client ends while it does not read",
            Fault::ResetsAtFin,
        ),
        ("ends/client resets", Fault::DiesOnReset),
        (
            "ends/client resets with bytes under way",
            Fault::DiesOnReset,
        ),
        ("stall/client does not read", Fault::ReadsWithoutBound),
        ("stall/client reads again", Fault::HangsAfterStall),
        (
            "stall/client reads slowly what comes in segments of one byte",
            Fault::HangsAfterStall,
        ),
        (
            "stall/client does not read: other connections",
            Fault::HeadOfLine,
        ),
        ("stall/memory", Fault::ReadsWithoutBound),
        ("many/at once", Fault::LimitedTo(40)),
        ("many/full at once", Fault::HeadOfLine),
        ("many/reset when full", Fault::KeepsPipe),
    ]
}

fn left() -> Vec<(&'static str, Fault)> {
    vec![
        ("left/connections", Fault::NoFin),
        ("left/sockets", Fault::LeaksSockets),
        ("left/the same again", Fault::LeaksPipes),
        ("left/other descriptors", Fault::KeepsPipes(100)),
        ("left/memory", Fault::KeepsMemory(8 << 20)),
    ]
}
