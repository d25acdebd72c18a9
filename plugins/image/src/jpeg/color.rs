//! YCbCr to RGB, as libjpeg has it; CMYK to RGB, as Pillow has it.

/// Writes a row of pixels whose levels are in `y`, `cb` and `cr` to `out`, which has three bytes for each.
pub(crate) fn plain(y: &[u8], cb: &[u8], cr: &[u8], out: &mut [u8]) {
    for (((y, cb), cr), out) in y.iter().zip(cb).zip(cr).zip(out.as_chunks_mut::<3>().0) {
        *out = pixel(*y, *cb, *cr);
    }
}

/// Writes a row of grey levels to `out`, which has three bytes for each.
pub(crate) fn grey(y: &[u8], out: &mut [u8]) {
    for (y, out) in y.iter().zip(out.as_chunks_mut::<3>().0) {
        *out = [*y; 3];
    }
}

/// Writes a row of red, green and blue levels to `out`, which has three bytes for each.
pub(crate) fn rgb(red: &[u8], green: &[u8], blue: &[u8], out: &mut [u8]) {
    for (((red, green), blue), out) in red.iter().zip(green).zip(blue).zip(out.as_chunks_mut::<3>().0) {
        *out = [*red, *green, *blue];
    }
}

/// Takes black off a row of pixels: of all inks files hold what they leave of the light, as Adobe's do.
pub(crate) fn darken(black: &[u8], out: &mut [u8]) {
    for (black, out) in black.iter().zip(out.as_chunks_mut::<3>().0) {
        *out = out.map(|level| {
            // The product by 255, rounded.
            let product = u32::from(level) * u32::from(*black) + 128;
            ((product + (product >> 8)) >> 8) as u8
        });
    }
}

fn pixel(y: u8, cb: u8, cr: u8) -> [u8; 3] {
    let (y, cb, cr) = (i32::from(y), i32::from(cb) - 128, i32::from(cr) - 128);
    // In 1 / 65536.
    let red = y + ((91_881 * cr + 32_768) >> 16);
    let green = y + ((-22_554 * cb - 46_802 * cr + 32_768) >> 16);
    let blue = y + ((116_130 * cb + 32_768) >> 16);
    [red, green, blue].map(|level| level.clamp(0, 255) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn black_is_a_rounded_share() {
        for (level, black) in (0..=255).flat_map(|level| (0..=255).map(move |black| (level, black))) {
            let mut out = [level, 0, 255];
            darken(&[black], &mut out);
            let share = (f64::from(level) * f64::from(black) / 255.0).round() as u8;
            assert_eq!(out, [share, 0, black], "{level} {black}");
        }
    }

    #[test]
    fn is_close_to_the_textbook() {
        for at in 0..1 << 18 {
            let levels = [(at >> 12) * 4, (at >> 6 & 63) * 4, (at & 63) * 4].map(|level| level as u8);
            let [y, cb, cr] = levels.map(f64::from);
            let (cb, cr) = (cb - 128.0, cr - 128.0);
            let expected = [y + 1.402 * cr, y - 0.344_136 * cb - 0.714_136 * cr, y + 1.772 * cb];
            let found = pixel(levels[0], levels[1], levels[2]);
            for (found, expected) in found.iter().zip(expected) {
                assert!((f64::from(*found) - expected.clamp(0.0, 255.0)).abs() < 0.51, "{levels:?}");
            }
        }
    }
}
