//! Ways in which a scripted server departs from an honest one, one at a time.

/// What the server does otherwise than RFC 6455 and an echo ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lapse {
    /// It is honest.
    None,

    // Handshake.
    BadStatus,
    BadAccept,
    /// The request must come with one read.
    WholeRequest,
    /// `Upgrade`, and not `upgrade`.
    ExactNames,
    /// `websocket` and `Upgrade`, and not `WebSocket`.
    ExactValues,
    /// `Connection: keep-alive, Upgrade` is not understood.
    NoLists,
    /// No more headers than ten.
    FewHeaders,
    /// No request above 4 KiB.
    ShortHead,
    AnyVersion,
    VersionOptional,
    /// 400 for a wrong version, and no word of the right one.
    VersionUntold,
    KeyOptional,
    AnyKey,
    AnyMethod,
    AnyHttp,
    AnyPath,
    UpgradeOptional,
    ConnectionOptional,
    /// Bytes behind the request end the connection.
    RefusesEarly,
    /// Each request of a segment is answered.
    AnswersTwice,
    /// The next connection waits for the end of the one before.
    OneAtATime,

    // Echo.
    /// The last byte of messages of this opcode and length.
    Flips(u8, usize),
    /// The last byte of each message.
    FlipsAll,
    OneByteMore,
    OneByteLess,
    AlwaysBinary,
    /// All are of the type of the first.
    FirstType,
    /// Characters beyond ASCII become question marks.
    AsciiOnly,
    /// Answers are cut at 64 KiB less one.
    Short16,
    /// A longer message is refused.
    Limit(usize),
    /// All that one read brings is one message.
    Merged,
    /// After one frame the rest of what was read is forgotten.
    OneFrameARead,
    /// A frame whose header does not come whole ends the connection.
    WholeHeaders,
    /// The connection ends after so many.
    Messages(usize),
    Twice,
    Silent,
    /// Silent on two connections, between which it is not.
    SilentTwice,
    /// On its first two connections.
    SilentAtFirst,
    /// Sends these bytes behind the handshake, and then those for ever.
    Endless(&'static [u8], &'static [u8]),
    /// So many milliseconds between the bytes of an answer.
    Drips(u64),
    /// So many milliseconds before each answer, that to a handshake too.
    Slow(u64),
    Closes,
    ClosesWithCode,
    Masks,
    ReservedBit,
    /// The answer comes in fragments with a ping between, which is allowed.
    AnswersInFragments,

    // Fragmentation.
    /// More than so many end the connection.
    Fragments(usize),
    NoEmptyFragments,
    /// Text must be whole characters in each fragment.
    WholeCharacters,
    /// Messages in fragments come back as binary.
    BinaryFragments,
    /// A ping among fragments is not answered.
    NoPongWithin,
    /// A ping in fragments is answered.
    FragmentedPing,
    /// A continuation frame without a start begins a binary message.
    LoneContinuation,
    /// A new message replaces the unfinished one.
    NewMessage,

    // Control.
    NoPongTo(usize),
    WrongPong,
    /// What came in one segment with a ping is forgotten.
    PingTakesRest,
    /// Of the pings of a read, the first is answered.
    FirstPing,
    /// A pong ends the connection.
    PongEnds,
    LongControl(u8),

    // Close.
    /// A close frame with this code is answered by the end of the connection alone.
    NoCloseFor(Option<u16>),
    /// No reason above 100 bytes.
    ShortReason,
    /// Whatever the code.
    Always1000,
    /// A close frame comes back whatever is in it.
    RepeatsClose,
    /// A close frame with this code comes back.
    RepeatsCode(u16),
    AnswersAfterClose,
    CloseOvertakes,
    /// The closing handshake does not end the connection.
    OpenAfterClose,
    IgnoresFin,
    /// The end of what is read ends what is not yet answered.
    FinOvertakes,
    /// After a reset nobody is served.
    DiesByReset,

    // Refused.
    Unmasked,
    /// Lengths in more bytes than they need.
    LongLength,
    /// The highest bit of a length is not looked at.
    HighBit,
    /// Waits for any length.
    Unlimited,
    Bits(u8),
    /// Frames with this opcode are passed over.
    Opcode(u8),
    /// Text is not looked at.
    AnyText,
    /// Text in fragments is not looked at.
    AnyTextInFragments,
    /// Text is looked at when the message is whole.
    LateText,
    /// Errors end the connection without a close frame.
    NoReason,
}
