//! In what a scripted relay or echo server is wrong.

/// One thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// Takes connections, and does nothing with them.
    Silent,
    /// Keeps the last byte of each direction to itself.
    LosesLastByte,
    /// Connects to the origin when the first byte comes.
    Lazy,
    /// Passes two segments on in the wrong order, once.
    SwapsSegments,
    /// Passes a segment on twice, once.
    Duplicates,
    /// Takes a full pipe for an empty source, and waits for more to come.
    TrustsEagain,
    /// Forgets what the socket did not take.
    DropsRest,
    /// Changes a byte behind so many.
    FlipsBehind(u64),
    /// Carries to the client only when the client has ended.
    HalfDuplex,
    /// Does not pass an end on.
    NoFin,
    /// Ends both ways when one ends.
    ClosesBoth,
    /// Makes a reset of an end.
    ResetsAtFin,
    /// Leaves the other side alone when one is broken.
    IgnoresReset,
    /// Makes an end of a reset.
    FinForReset,
    /// Takes no connection any more after one was broken.
    DiesOnReset,
    /// Reads on, whether or not it can write.
    ReadsWithoutBound,
    /// Never writes again to who once took nothing for a while.
    HangsAfterStall,
    /// Nobody is written to while somebody else takes nothing.
    HeadOfLine,
    /// Nothing is read from who takes nothing.
    WayBlocksWay,
    /// Serves so many at a time.
    LimitedTo(usize),
    /// Begins with what was left of a broken connection.
    KeepsPipe,
    /// Holds the client whose origin refuses.
    HoldsRefused,
    /// Takes no connection any more after an origin refused.
    DiesOnRefusal,
    /// Waits for an origin no longer than a moment.
    HastyConnect,
    /// Does not close the second way of a connection.
    NoSecondFin,
    /// Keeps a socket of each connection.
    LeaksSockets,
    /// Keeps a pipe of each broken connection.
    LeaksPipes,
    /// Keeps so many pipes for later use.
    KeepsPipes(usize),
    /// Keeps so much memory of each connection.
    KeepsMemory(u64),
}
