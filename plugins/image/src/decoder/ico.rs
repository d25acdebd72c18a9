//! What is in a Windows icon.

/// The PNG file that is the largest picture of an icon, if it is one: of these any kind is taken, not just that of the
/// standard.
pub(crate) fn png_inside(bytes: &[u8]) -> Option<&[u8]> {
    let count = usize::from(u16::from_le_bytes(*bytes.get(4..)?.first_chunk()?));
    let entries = bytes.get(6..)?.as_chunks::<16>().0;
    let side = |side: u8| if side == 0 { 256 } else { u32::from(side) };
    let largest = entries
        .iter()
        .take(count)
        .max_by_key(|entry| (side(entry[0]) * side(entry[1]), u16::from_le_bytes([entry[6], entry[7]])))?;
    let number = |at: usize| Some(u32::from_le_bytes(*largest.get(at..)?.first_chunk()?) as usize);
    let png = bytes.get(number(12)?..)?;
    let png = png.get(..number(8)?).unwrap_or(png);
    png.starts_with(b"\x89PNG").then_some(png)
}
