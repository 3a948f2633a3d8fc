//! Cutting a stream into the segments in which it comes.

/// The stream in segments. Cuts behind its end and double ones do not matter.
pub fn cut<'a>(stream: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut ends: Vec<usize> = cuts.iter().map(|at| at % (stream.len() + 1)).collect();
    ends.push(stream.len());
    ends.sort_unstable();
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let segments = starts.zip(&ends).map(|(start, end)| &stream[start..*end]);
    segments.collect()
}
