//! A client's frame as the scripted server reads it.

use super::lapse::Lapse;

/// One that may stand by itself.
pub struct Frame {
    pub fin: bool,
    pub opcode: u8,
    pub payload: Vec<u8>,
}

/// Why there is no frame.
pub enum Cut {
    /// It is not whole.
    More,
    /// It is forbidden, for the reason of this code.
    Wrong(u16),
}

/// The first frame and its whole length.
pub fn frame(bytes: &[u8], lapse: Lapse, limit: usize) -> Result<(Frame, usize), Cut> {
    let [first, second, rest @ ..] = bytes else {
        return Err(Cut::More);
    };
    let (fin, bits, opcode) = (first & 0x80 != 0, first & 0x70, first & 0x0f);
    if bits != 0 && lapse != Lapse::Bits(bits) {
        return Err(Cut::Wrong(1002));
    }
    let passed_over = lapse == Lapse::Opcode(opcode);
    if !matches!(opcode, 0..=2 | 8..=10) && !passed_over {
        return Err(Cut::Wrong(1002));
    }
    let masked = second & 0x80 != 0;
    if !masked && lapse != Lapse::Unmasked {
        return Err(Cut::Wrong(1002));
    }
    let extended = match second & 0x7f {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let (length, rest) = rest.split_at_checked(extended).ok_or(Cut::More)?;
    let mut length = match extended {
        0 => u64::from(second & 0x7f),
        _ => length
            .iter()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte)),
    };
    if length >> 63 != 0 {
        if lapse != Lapse::HighBit {
            return Err(Cut::Wrong(1002));
        }
        length &= u64::MAX >> 1;
    }
    let shortest = match length {
        0..=125 => 0,
        126..=0xffff => 2,
        _ => 8,
    };
    if extended != shortest && !matches!(lapse, Lapse::LongLength | Lapse::HighBit) {
        return Err(Cut::Wrong(1002));
    }
    let control = opcode >= 8 && !passed_over;
    if control && length > 125 && lapse != Lapse::LongControl(opcode) {
        return Err(Cut::Wrong(1002));
    }
    if control && !fin && lapse != Lapse::FragmentedPing {
        return Err(Cut::Wrong(1002));
    }
    // The rest of a ping in fragments.
    let rest_of_ping = lapse == Lapse::FragmentedPing && opcode == 0;
    let length = usize::try_from(length).map_err(|_| Cut::Wrong(1009))?;
    if length > limit {
        return Err(Cut::Wrong(1009));
    }
    let (key, rest) = rest
        .split_at_checked(if masked { 4 } else { 0 })
        .ok_or(Cut::More)?;
    let payload = rest.get(..length).ok_or(Cut::More)?;
    let mut payload = payload.to_vec();
    if masked {
        for block in payload.chunks_mut(4) {
            for (byte, key) in block.iter_mut().zip(key) {
                *byte ^= key;
            }
        }
    }
    let whole = 2 + extended + key.len() + length;
    let opcode = match opcode {
        _ if passed_over || rest_of_ping => 10,
        opcode => opcode,
    };
    let frame = Frame {
        fin,
        opcode,
        payload,
    };
    Ok((frame, whole))
}

/// Of the frame that the bytes begin.
pub fn header_length(bytes: &[u8]) -> usize {
    match bytes.get(1).map_or(0, |byte| byte & 0x7f) {
        126 => 8,
        127 => 14,
        _ => 6,
    }
}
