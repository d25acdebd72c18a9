# Written by python/tests/make_stubs.py, from what the plugins say of themselves.
from collections.abc import Sequence
from typing import Any, Literal

from forebay._dataset import Dataset

__all__ = ["concat", "lookup", "mix", "mux", "range", "zip", "zip_by_key"]

class Pipes:
    def assert_length(
        self,
        count: int,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The stream as it is, if it has as many samples as it should.

        count: How many samples there must be.
        """

    def bucket_by_length(
        self,
        length: str,
        boundaries: Sequence[int],
        sizes: int | Sequence[int],
        pad_to_boundary: bool = ...,
        multiple: int | Sequence[int] = ...,
        fields: str | Sequence[str] | None = ...,
        values: str | Sequence[str] = ...,
        mask: str | Sequence[str] | None = ...,
        lengths: str | Sequence[str] | None = ...,
        drop_last: bool = ...,
        uids: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Batches of samples that are about equally long.

        length: An expression for the length of a sample: a number, or something that has a length.

        boundaries: Where the next bucket begins: each length, in rising order, is the least of its bucket.

        sizes: Samples in a batch: one number for every bucket, or a list with one for each, which has one more than there are boundaries.

        pad_to_boundary: Pad to the greatest length of the bucket, which is one below its boundary. Samples for which there is no boundary are errors.

        multiple: What the length of the first axis, or of each of the first axes, is a multiple of, where it is that of the longest.

        fields: The fields to pad; null for all tensors with axes and all lists of numbers.

        values: `field=number`: what fields are padded with; 0 for the others.

        mask: `_mask` for new fields called that after each padded one, of its shape, true where something was; or `field=name`.

        lengths: `_length` for new fields called that after each padded one, with the lengths of the first axis before; or `field=name`.

        drop_last: Leave out the batches at the end that are not full.

        uids: A new field for the uids of the samples in a batch, in their order; null for none.
        """

    def cache(
        self,
        folder: str = ...,
        limit: int | None = ...,
        identity: str = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Keeps samples in memory or a folder, for later epochs and runs.

        folder: A folder to keep samples in, for later runs too; none: in memory.

        limit: The most bytes that are kept, in a folder by all caches; 1 GiB in memory, 16 GiB in a folder. Of more the last are kept, and those before are read anew.

        identity: What the kept samples are known by in the folder. The loader puts before it what tells the graph before this and the files it reads from others: a change behind a URL it cannot see.
        """

    def cast(
        self,
        fields: str | Sequence[str],
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Numbers and tensors in another type.

        fields: `name=type`, one for each field: `image=f32`. The types: bool, u8 to u64, i8 to i64, f16, bf16, f32, f64.
        """

    def center_crop(
        self,
        size: int | Sequence[int],
        field: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The middle of a picture.

        size: Height and width, or one number for both.

        field: The field with the picture, decoded or not; null for the first that holds one.
        """

    def collate(
        self,
        fields: str | Sequence[str] | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Lists of numbers to tensors.

        fields: The fields to stack; null for all.
        """

    def collect(
        self,
        limit: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Holds a stream in memory, so that a sampler can draw from it.

        limit: The most bytes that are held behind a sampler.
        """

    def concat(
        self,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """One input after the other."""

    def csv(
        self,
        fields: str | Sequence[str] = ...,
        types: Any = ...,
        nulls: Sequence[str] = ...,
        ragged: Literal["refuse", "fill"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Records of CSV and TSV files to samples.

        fields: The columns that become fields; none: all.

        types: What cells become: `text`, `auto`, `int`, `float` or `bool`; or an object with that for some columns, text for others.

        nulls: Cells with one of these texts are null.

        ragged: Records with more or fewer cells than columns: an error, or filled with nulls and cut.
        """

    def csv_blocks(
        self,
        separator: str | None = ...,
        quote: str = ...,
        comment: str = ...,
        header: bool = ...,
        names: Sequence[str] = ...,
        block: int = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Blocks of whole records out of CSV files.

        separator: What stands between fields, one ASCII character. None: a tab in files called `.tsv` or `.tab`; else a comma, or, where the first record has none, the semicolon, tab or bar that it has.

        quote: What stands around fields, one ASCII character; empty: nothing does.

        comment: What lines begin with that are skipped, one ASCII character; empty: none are.

        header: Whether the first record has the names of the columns.

        names: The names of the columns, instead of those of the header. None and no header: `column_1` and so on.

        block: About how many bytes a block has.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def decode(
        self,
        fields: str | Sequence[str] | None = ...,
        decoders: Sequence[str] = ...,
        strict: bool | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Bytes to values, by the best decoder that is installed.

        fields: The fields to decode; null for all that hold bytes for which there is a decoder.

        decoders: `field=decoder`, one for each field whose decoder is not to be chosen.

        strict: Whether bytes that no decoder takes are an error; null for those in `fields` alone.
        """

    def decode_frames(
        self,
        field: str | None = ...,
        delays: str | None = ...,
        most: int | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Animations to a tensor of all frames.

        field: The field with the animation's bytes; null for the first that begins as a picture does.

        delays: A new field for how many milliseconds each frame is shown, a float64 tensor [frames]; null for none.

        most: The most frames to read, the first ones; null for all.
        """

    def decompress(
        self,
        fields: Sequence[str] | None = ...,
        codec: Literal["auto", "gzip", "zlib", "zstd", "xz", "bzip2", "lz4", "compress"] = ...,
        rename: bool = ...,
        first: int | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Packed values to what is in them: gzip, zlib, zstd, xz, bzip2, lz4, compress.

        fields: The fields to unpack; null for all whose names end as packed files' do, such as `json.gz`, or else `bytes`. For `bytes`, where a sample has none, the file that its `path` names is taken.

        codec: What packed them: `auto` looks at the first bytes, and leaves values that are not packed as they are.

        rename: Take the endings of packing off the names of fields that are unpacked: `json.gz` becomes `json`.

        first: Only so many bytes of what is inside, at most: to look at it, since no more of a file is unpacked than they take.
        """

    def demux(
        self,
        field: str | None = ...,
        count: int = ...,
        values: Sequence[str] | None = ...,
        other: Literal["fail", "drop"] = ...,
        block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> tuple[Dataset, ...]:
        """Each sample to one of several outputs.

        field: The field that says which output a sample goes to; null deals them out in turn.

        count: How many outputs there are.

        values: What the field holds for each output, in order; null for the numbers from 0.

        other: What becomes of a sample whose field holds something else.

        block: Samples for an output before it is the next one's turn, where there is no `field`.
        """

    def distributed_sampler(
        self,
        shuffle: bool = ...,
        drop_last: bool = ...,
        repeat: Sequence[int] = ...,
        order: Literal["forebay", "torch"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Each rank its share of a source with random access, all of one length.

        shuffle: Random order, another one in each epoch.

        drop_last: Leave out the last samples rather than give some of the first ones again, so that all ranks get equally many.

        repeat: The numbers of the samples that are given again where ranks lack one; none: the first ones of the order.

        order: Whose random order: `forebay` needs no memory, `torch` is that of `torch.randperm`, at eight bytes a sample.
        """

    def drop(
        self,
        fields: str | Sequence[str],
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Leaves out some fields.

        fields: The fields to leave out.
        """

    def encode_jpeg(
        self,
        quality: int = ...,
        field: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Pictures to the bytes of JPEG files.

        quality: From 1, small, to 100, good; as libjpeg counts.

        field: The field with the picture; null for the first that holds one.
        """

    def encode_png(
        self,
        effort: Literal["fast", "default", "best"] = ...,
        field: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Pictures to the bytes of PNG files.

        effort: How long to look for a smaller file.

        field: The field with the picture; null for the first that holds one.
        """

    def encode_webp(
        self,
        field: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Pictures to the bytes of lossless WebP files.

        field: The field with the picture; null for the first that holds one.
        """

    def enumerate(
        self,
        field: str = ...,
        start: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Adds the number of each sample in the stream.

        field: The name of the new field, an int64.

        start: The number of the first sample.
        """

    def fixed_length_records(
        self,
        record_bytes: int | None = ...,
        dtype: str | None = ...,
        header_bytes: int = ...,
        footer_bytes: int = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The records of files in which all have the same length.

        record_bytes: How many bytes a record has; null for as many as `dtype` says. Beside a `dtype` of fewer, the rest of each record is skipped.

        dtype: What is in a record, as NumPy writes a dtype: `<f4`, or a list of fields, such as `[('label', 'u1'), ('image', 'u1', (3, 32, 32))]`; null for bytes.

        header_bytes: How many bytes stand before the first record.

        footer_bytes: How many bytes stand behind the last record.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def flatten(
        self,
        fields: str | Sequence[str] | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The fields of structs as fields of the sample.

        fields: The structs; null for all that are structs.
        """

    def flip(
        self,
        p: float = ...,
        field: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Mirrors a picture left to right, or leaves it, at random.

        p: How likely a picture is mirrored.

        field: The field with the picture; null for the first that holds one.
        """

    def fork(
        self,
        count: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> tuple[Dataset, ...]:
        """Every sample to several outputs.

        count: How many outputs there are.
        """

    def group(
        self,
        packed: Sequence[str] = ...,
        by: str = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Neighbouring files that belong together, as one sample.

        packed: Extensions that stand behind another one, which then belongs to the field's name: `json.gz`.

        by: What the files of a sample share: `extension` for folder and name up to it, `folder`, or what stands for `{key}` in a path that ends as `{key}_{field}.png` does, or for the group `key` of a regular expression over the path: `(?<key>.*)-(?<field>[a-z]+)[.]png$`.
        """

    def group_by(
        self,
        key: str,
        size: int | None = ...,
        buffer: int = ...,
        guaranteed: int | None = ...,
        drop_remaining: bool = ...,
        consecutive: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples with one key, stacked into one.

        key: An expression that gives a sample's key.

        size: Samples in a group, which is given as soon as it has so many; null for as many as there are.

        buffer: The most samples that wait, of all groups. When so many do, the largest group is given.

        guaranteed: How many samples a group must have that is given because the buffer is full: it fails for a smaller one. Null for `size`, or one.

        drop_remaining: Leave out groups with fewer samples than guaranteed, at the end too.

        consecutive: Whether a sample with another key ends the group before it, so that there is one group at a time.
        """

    def hdf5_pieces(
        self,
        datasets: str | Sequence[str] = ...,
        root: str = ...,
        by: Literal["auto", "row", "group"] = ...,
        piece_bytes: int = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """HDF5 files to pieces of rows, for hdf5_rows to read in parallel.

        datasets: The datasets that are read, by path from `root`; all of them if none is named.

        root: The group where paths start.

        by: What a sample is: `row` takes row after row of datasets that have equally many, `group` the datasets of each group in `root`; `auto` what the file's structure says.

        piece_bytes: About how many bytes the rows of a piece take; whole chunks, but at least one, unless its rows take more than 16 MiB.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def hdf5_rows(
        self,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Pieces of HDF5 files to samples: rows, or groups."""

    def in_batch_shuffle(
        self,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The rows of each batch in random order."""

    def json_array(
        self,
        fields: str | Sequence[str] = ...,
        at: str = ...,
        duplicates: Literal["last", "first", "refuse"] = ...,
        invalid_utf8: Literal["refuse", "replace"] = ...,
        big_integers: Literal["float", "text"] = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The items of a JSON array to samples.

        fields: The fields of a sample: keys, or pointers such as `/box/0`; what an item lacks is null. None: every key that an item has.

        at: The pointer to the array, such as `/data/rows`; empty when the document is one.

        duplicates: Of equal keys in an object, the value that counts; or that they are an error.

        invalid_utf8: Bytes that are not UTF-8 and halves of surrogate pairs: an error, or replaced by U+FFFD.

        big_integers: Integers beyond 64 bits: the nearest float64, or their digits as text.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def json_lines(
        self,
        fields: str | Sequence[str] = ...,
        duplicates: Literal["last", "first", "refuse"] = ...,
        invalid_utf8: Literal["refuse", "replace"] = ...,
        big_integers: Literal["float", "text"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """A JSON document a line to samples.

        fields: The fields of a sample: keys, or pointers such as `/box/0`; what a row lacks is null. None: every key that a row has.

        duplicates: Of equal keys in an object, the value that counts; or that they are an error.

        invalid_utf8: Bytes that are not UTF-8 and halves of surrogate pairs: an error, or replaced by U+FFFD.

        big_integers: Integers beyond 64 bits: the nearest float64, or their digits as text.
        """

    def label(
        self,
        classes: Sequence[str] | None = ...,
        root: str = ...,
        field: str = ...,
        class_: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Adds the class that a file's folder is named after, and its number.

        classes: The names of the classes; the place of a name is its label. When none are given, they are the names of the folders in `root`, sorted, without those that begin with a dot.

        root: The folder that has a folder for each class; must be given when `classes` is not.

        field: The field for the label, an int64.

        class_: A field for the class's name; null for none.
        """

    def lines(
        self,
        block: int = ...,
        rows: int | None = ...,
        index: str | None = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Blocks of whole lines out of files.

        block: About how many bytes a block has; of a file that is not on this machine at least 4 MiB.

        rows: How many lines a block has, instead: 1 to shuffle lines themselves. The file is read once for it, before its first block.

        index: With `rows`, where to keep where the blocks of local files end: `beside` each, or a folder; null for nowhere.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def lookup(
        self,
        key: str | None = ...,
        left: str | None = ...,
        right: str | None = ...,
        join: Literal["strict", "inner", "left"] = ...,
        limit: int = ...,
        prefix: Sequence[str] | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The fields of a table's row in each sample that has its key.

        key: An expression that gives a key, over the samples of both inputs; null for the sample's name, or that of its file without folder and extension.

        left: The same for the first input alone.

        right: The same for the rows of the table alone.

        join: What becomes of a sample whose key no row has: `strict` fails, `inner` leaves it out, `left` goes on with nulls.

        limit: The most bytes of the table that are held.

        prefix: What to put before the names of each input's fields, two texts; null when no name comes twice.
        """

    def max_tokens(
        self,
        length: str,
        most: int,
        buffer: int = ...,
        min: int = ...,
        max: int | None = ...,
        padding: bool = ...,
        multiple: int | Sequence[int] = ...,
        fields: str | Sequence[str] | None = ...,
        values: str | Sequence[str] = ...,
        mask: str | Sequence[str] | None = ...,
        lengths: str | Sequence[str] | None = ...,
        uids: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Batches with a bound on the sum of lengths.

        length: An expression for the length of a sample: a number, or something that has a length.

        most: The greatest sum of the lengths in a batch.

        buffer: Samples that are sorted by their length, of which the shortest comes next.

        min: The least length; shorter samples are left out.

        max: The greatest length; longer samples are left out. Null for `most`.

        padding: Count each sample as long as the longest in its batch.

        multiple: What the length of the first axis, or of each of the first axes, is a multiple of, where it is that of the longest.

        fields: The fields to pad; null for all tensors with axes and all lists of numbers.

        values: `field=number`: what fields are padded with; 0 for the others.

        mask: `_mask` for new fields called that after each padded one, of its shape, true where something was; or `field=name`.

        lengths: `_length` for new fields called that after each padded one, with the lengths of the first axis before; or `field=name`.

        uids: A new field for the uids of the samples in a batch, in their order; null for none.
        """

    def mix(
        self,
        weights: Sequence[float] | None = ...,
        stop: Literal["cycle_until_all_exhausted", "all_exhausted", "first_exhausted", "cycle_forever"] = ...,
        tag: str | None = ...,
        names: Sequence[str] | None = ...,
        draw: Literal["sampled", "proportional"] = ...,
        after: Sequence[int] = ...,
        then: Sequence[float] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples of several inputs, drawn by weight.

        weights: How often each input is drawn, in proportion to the others, a number for each; null for all alike.

        stop: When to stop: `cycle_until_all_exhausted` starts inputs that have ended over, until each has ended once; `all_exhausted` gives each sample once; `first_exhausted` stops with the first input that has ended; `cycle_forever` never does.

        tag: A new field that says which input a sample came from; null for none.

        names: What `tag` calls the inputs; null for their numbers, from 0.

        draw: How inputs are drawn: `sampled`, at random; `proportional`, in an order in which each has its share of the samples, rounded down or up, at every moment.

        after: After how many samples other weights apply, rising: those in `then`.

        then: The weights that apply then, a number for each input, and that again for each number in `after`.
        """

    def mux(
        self,
        stop: Literal["shortest", "longest"] = ...,
        block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples of each input in turn.

        stop: When to stop: `shortest` as soon as the input whose turn it is has ended, `longest` when all have, leaving out those that have.

        block: Samples of an input before it is the next one's turn.
        """

    def normalize(
        self,
        mean: Sequence[float] = ...,
        std: Sequence[float] = ...,
        field: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Bytes [height, width, channels] to standardised float32 [channels, height, width].

        mean: Mean of each channel, of 1; ImageNet's.

        std: Standard deviation of each channel, of 1; ImageNet's.

        field: The field with the picture; null for the first that holds one.
        """

    def pack(
        self,
        length: int,
        method: Literal["first_fit", "best_fit", "concat"] = ...,
        bins: int = ...,
        fields: str | Sequence[str] | None = ...,
        meta: Sequence[str] | None = ...,
        segments: bool = ...,
        positions: bool = ...,
        pad: Any = ...,
        bos: Any = ...,
        eos: Any = ...,
        max_per_bin: int | None = ...,
        too_long: Literal["error", "split", "drop", "truncate"] = ...,
        drop_last: bool = ...,
        uids: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Sequences of any length side by side in rows of one length.

        length: Items in a row: of each packed field that has no length of its own.

        method: The row for a sequence: `first_fit`, the oldest that has room; `best_fit`, the one that it leaves least room in; `concat`, all one after the other, cut where a row ends.

        bins: Rows that are filled at a time; `concat` has one.

        fields: The fields to pack, each as `field` or `field=length`; null for all that hold tensors with axes or lists of numbers.

        meta: The fields that are kept as a list, with a value for each segment; null for all that are not packed.

        segments: Add `FIELD_segment_ids`, int32: which sequence of the row an item is of, from 1; 0 where nothing is.

        positions: Add `FIELD_positions`, int32: which item of its segment it is, from 0; 0 where nothing is.

        pad: What fills the rest of a row: a number, or `field=number`, one or a list.

        bos: What to put before each sequence: a number, or `field=number`, one or a list; null for nothing.

        eos: What to put behind each sequence, likewise.

        max_per_bin: The most sequences in a row; null for any number.

        too_long: What becomes of a sequence that is longer than a row, other than with `concat`: `split`, in as many pieces as it takes; `drop`; `truncate`, its end is cut off.

        drop_last: With `concat`: leave out the last row if it is not full.

        uids: A new field for the uids of the samples in a row, one for each segment; null for none.
        """

    def pad_to_length(
        self,
        count: int = ...,
        multiple: int = ...,
        ranks: bool = ...,
        field: str = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """At least so many samples, the last of them repeated if need be.

        count: How many samples to give at least.

        multiple: And a multiple of this many.

        ranks: And that for each rank, so that all ranks get equally many, and batches too.

        field: The new field that is true of the samples that came, and false of those that were added.
        """

    def padded_batch(
        self,
        size: int,
        pad_to: int | Sequence[int] | None = ...,
        multiple: int | Sequence[int] = ...,
        fields: str | Sequence[str] | None = ...,
        values: str | Sequence[str] = ...,
        mask: str | Sequence[str] | None = ...,
        lengths: str | Sequence[str] | None = ...,
        drop_last: bool = ...,
        uids: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Consecutive samples stacked into one, padded where they differ in shape.

        size: Samples in one batch.

        pad_to: The length of the first axis, or of each of the first axes; 0, null and axes beyond these for that of the longest in the batch.

        multiple: What the length of the first axis, or of each of the first axes, is a multiple of, where it is that of the longest.

        fields: The fields to pad; null for all tensors with axes and all lists of numbers.

        values: `field=number`: what fields are padded with; 0 for the others.

        mask: `_mask` for new fields called that after each padded one, of its shape, true where something was; or `field=name`.

        lengths: `_length` for new fields called that after each padded one, with the lengths of the first axis before; or `field=name`.

        drop_last: Leave out the last batch if it is shorter.

        uids: A new field for the uids of the samples in a batch, in their order; null for none.
        """

    def parse_example(
        self,
        features: Sequence[str] = ...,
        field: str = ...,
        sequence: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The features of tf.train.Example messages as fields.

        features: The features to give, in this order: `name`, `name=type` or `name=type[2,3]`; empty for all, sorted by name. Types are bytes, str, float32 and int64; `[]` is a single value.

        field: The field with the message; it goes.

        sequence: The message is a `tf.train.SequenceExample`.
        """

    def prefetch(
        self,
        ahead: int = ...,
        bytes: int = ...,
        field: str = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Asks for remote files before they are read.

        ahead: How many samples are held while their files are asked for.

        bytes: How many bytes of each, from its start; the store's bounds hold besides.

        field: The field with the file's URL.
        """

    def ragged_batch(
        self,
        size: int,
        fields: str | Sequence[str] | None = ...,
        drop_last: bool = ...,
        uids: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Consecutive samples stacked into one, end to end where they differ in length.

        size: Samples in one batch.

        fields: The fields that become ragged, in every batch; null for lists of numbers, and for tensors where their lengths differ.

        drop_last: Leave out the last batch if it is shorter.

        uids: A new field for the uids of the samples in a batch, in their order; null for none.
        """

    def random_resized_crop(
        self,
        size: int | Sequence[int],
        scale: Sequence[float] = ...,
        ratio: Sequence[float] = ...,
        filter: Literal["nearest", "bilinear", "catmullrom", "lanczos3"] = ...,
        field: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """A random rectangle of a picture, in one size.

        size: Height and width, or one number for both.

        scale: Least and greatest share of the picture's area.

        ratio: Least and greatest width over height.

        filter: How the new pixels are made.

        field: The field with the picture, decoded or not; null for the first that holds one.
        """

    def random_sampler(
        self,
        replacement: bool = ...,
        num_samples: int | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The samples of a source with random access, in random order.

        replacement: Draw each time from all, so that some come often and others never.

        num_samples: How many to draw; null for as many as there are. More than that without replacement begins another order of all.
        """

    def random_split(
        self,
        weights: Sequence[float],
        take: int | Sequence[int] | None = ...,
        count: int = ...,
        seed: int | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Any:
        """The stream in parts, drawn by weight, each sample always in the same one.

        weights: How large each part is, in proportion to the others: numbers above 0.

        take: Give this part alone, by its number from 0, or these parts as one stream; null to give all.

        count: How many outputs there are: as many as parts, for all of them, or one, with `take`.

        seed: What the draws depend on, beside the sample; null for the run's seed.
        """

    def read(
        self,
        field: str = ...,
        open: Literal["mmap", "read"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The bytes of the file that a field names.

        field: The field with the path or URL of a file.

        open: How to open: `mmap` shows the file without a copy, `read` takes it into memory, as both do what a URL names.
        """

    def read_columns(
        self,
        size: int = ...,
        arrow: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Pieces of Parquet and Arrow files to batches by column, without a copy.

        size: The most rows in a batch. A batch ends where its piece does.

        arrow: All columns are Arrow values, those of numbers too, so that their types stay as they are in the file.
        """

    def read_rows(
        self,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Pieces of Parquet and Arrow files to samples by row."""

    def rebatch(
        self,
        size: int,
        drop_last: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Batches of another size.

        size: Samples in one batch.

        drop_last: Leave out the last batch if it is shorter.
        """

    def rejection_resample(
        self,
        field: str,
        target: Sequence[float],
        initial: Sequence[float] | None = ...,
        values: Sequence[str] | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Leaves out samples of frequent classes, until the classes are as frequent as wanted.

        field: The field that holds a sample's class.

        target: How frequent each class is to be, in proportion to the others; 0 for none of it.

        initial: How frequent each class is in what comes, in proportion to the others; null to count on the way.

        values: What the field holds for each class, in order; null for the numbers from 0.
        """

    def rename(
        self,
        fields: str | Sequence[str],
        missing: Literal["fail", "keep"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """New names for fields.

        fields: `old=new`, one for each field to rename; all at once, so that two can change places. With `;` between several old names, as in `jpg;png=image`, the first of them that a sample has gets the new name.

        missing: What becomes of a sample that has none of the old names: `fail` is an error, `keep` leaves its names as they are.
        """

    def repeat(
        self,
        count: int | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The whole stream several times.

        count: How often to give the whole stream; null without end.
        """

    def repeat_each(
        self,
        count: int,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Gives every sample several times in a row.

        count: How often each sample is given, from 1.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def resize(
        self,
        size: int | Sequence[int],
        filter: Literal["nearest", "bilinear", "catmullrom", "lanczos3"] = ...,
        shorter: bool = ...,
        field: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """A picture in another size, antialiased.

        size: Height and width, or one number for both.

        filter: How the new pixels are made.

        shorter: Keep the shape, and make the shorter side `size`, which is one number then.

        field: The field with the picture, decoded or not; null for the first that holds one.
        """

    def row_groups(
        self,
        columns: Sequence[str] = ...,
        filter: str | None = ...,
        hive: bool = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Parquet and Arrow files to the pieces they are read in.

        columns: The columns to read, all when empty; `a.b` is `b` within `a`.

        filter: The rows to read: comparisons joined by `and`, such as `label == 3 and split != 'test'`.

        hive: Folders called `name=value` in the path are fields.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def scan(
        self,
        fields: str | Sequence[str],
        init: str | Sequence[str],
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Fields that expressions give of a sample and of what they gave before it.

        fields: `name=expression`, one for each value that is carried on: `total=total + value`. All see the sample, and under their names what they gave for the one before.

        init: `name=expression`, what each of them is before the first sample: `total=0`.
        """

    def select(
        self,
        fields: str | Sequence[str],
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Some of the fields, in a new order.

        fields: The fields to keep, in this order.
        """

    def sequential_sampler(
        self,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The samples of a source with random access, in order."""

    def shard(
        self,
        drop_last: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Each rank its share of the samples.

        drop_last: Leave out the last round if it has no sample for some rank, so that all ranks get equally many.
        """

    def shuffle(
        self,
        size: int,
        initial: int | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Random order within a buffer.

        size: Samples in the buffer; one keeps the order, as many as there are gives every order alike.

        initial: Samples in the buffer before the first one is given; null for `size`. Then two are taken for each that is given, until it is full.
        """

    def skip(
        self,
        count: int,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """All samples but the first.

        count: How many samples to leave out.
        """

    def skip_while(
        self,
        predicate: str,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Leaves out the first samples, as long as an expression holds.

        predicate: An expression that is true of the samples to leave out: `step < 1000`. From the first on of which it is false all are given.
        """

    def slice(
        self,
        start: int | None = ...,
        stop: int | None = ...,
        step: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """A part of the stream, as Python's slice of a list.

        start: The first sample to give, from 0; a negative number counts from the end; null for the first of all.

        stop: The first sample that is not given any more; a negative number counts from the end; null for none.

        step: From one sample to the next, from 1.
        """

    def sort(
        self,
        by: str,
        size: int,
        reverse: bool = ...,
        mode: Literal["buffer", "window"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples by what an expression gives, within a bound.

        by: What to sort by: an expression that gives numbers, text, bytes, truth values or null.

        size: How many samples are held at most.

        reverse: The greatest first.

        mode: `buffer` gives the first of `size` samples and takes the next, again and again; `window` sorts each `size` samples by themselves.
        """

    def split_idx(
        self,
        alone: bool = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The pictures and labels of IDX files, as MNIST's, one a sample.

        alone: Give the labels in a file of labels by themselves, although the pictures that they belong to lie beside it.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def split_safetensors(
        self,
        names: Sequence[str] | None = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The tensors of safetensors files, one a sample.

        names: The tensors to give, by name; null for all.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def subsample(
        self,
        keep: float,
        epochs: Literal["same", "anew"] = ...,
        seed: int | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Some of the samples, drawn at random.

        keep: The probability with which each sample is kept, from 0 to 1.

        epochs: Whether the choice is the `same` in every epoch, or made `anew` for each epoch and pass.

        seed: What a choice that stays the same depends on, beside the sample; null for the run's seed.
        """

    def subset_sampler(
        self,
        indices: Sequence[int] | None = ...,
        start: int | None = ...,
        stop: int | None = ...,
        step: int = ...,
        shuffle: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Some samples of a source with random access, by number.

        indices: The numbers of the samples, in their order; null for those that a slice gives.

        start: Where the slice begins, as in Python: from the end where it is negative; null for the first.

        stop: Where it ends, before that one; null for after the last.

        step: From one to the next; negative ones go backwards, not zero.

        shuffle: Draw them in random order.
        """

    def take(
        self,
        count: int,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The first samples, and no more.

        count: How many samples to give.
        """

    def take_while(
        self,
        predicate: str,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The first samples, as long as an expression holds.

        predicate: An expression that is true of the samples to give: `step < 1000`. The first of which it is false ends the stream.
        """

    def tar_pieces(
        self,
        samples: int = ...,
        group: Literal["webdataset", "none"] = ...,
        index: str | None = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Tar shards cut where their samples start, for untar_pieces.

        samples: How many samples a piece has; 1 to shuffle samples themselves.

        group: Which members make a sample, as for `untar`.

        index: Where to keep what was found of local files: `beside` each, or a folder; null for nowhere.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def text_lines(
        self,
        field: str = ...,
        skip_blank: bool = ...,
        invalid_utf8: Literal["refuse", "replace"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """A line of text a sample.

        field: The field that holds the line.

        skip_blank: Leave out lines with nothing but white space.

        invalid_utf8: Bytes that are not UTF-8: an error, or replaced by U+FFFD.
        """

    def tfrecords(
        self,
        check: bool = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The records of TFRecord files, one a sample, without a copy.

        check: Check the checksum of each record's data. That of its length is always checked.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def unbatch(
        self,
        level: int = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """A batch back into its samples.

        level: How many batches within each other come apart; -1 for as many as every field can.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def unique(
        self,
        by: str | Sequence[str] | None = ...,
        most: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Leaves out samples that came before, by their fields or by expressions.

        by: What tells samples apart: an expression, or a list of them: `url`, `lowerAscii(text)`; null for all fields.

        most: How many different samples are remembered at most, about 40 bytes each; another one beyond is an error.
        """

    def untar(
        self,
        group: Literal["webdataset", "none"] = ...,
        links: Literal["skip", "follow"] = ...,
        concatenated: bool = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples out of tar shards, without a copy.

        group: Which members make a sample: `webdataset` joins neighbours that share their name up to the first dot, `none` gives each file as a sample of its own.

        links: What a hard link gives: nothing (`skip`), or the contents of the earlier file that it names (`follow`).

        concatenated: Go on behind the end of an archive, where another one may follow.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def untar_pieces(
        self,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples out of the pieces of tar shards, several pieces at once."""

    def unzip(
        self,
        group: Literal["webdataset", "none"] = ...,
        interleave: int = ...,
        interleave_block: int = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples out of zip archives.

        group: Which members make a sample: `webdataset` joins those that share their name up to the first dot, `none` gives each file as a sample of its own.

        interleave: How many samples are opened at a time, each giving a block in its turn; one: one after the other.

        interleave_block: How many samples come of one before it is the next one's turn.
        """

    def weighted_sampler(
        self,
        weights: Sequence[float],
        num_samples: int | None = ...,
        replacement: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples of a source with random access, drawn by weight.

        weights: How likely each sample is, a list of numbers from 0 up, one for each; they need not sum to anything.

        num_samples: How many to draw; null for as many as there are.

        replacement: Draw each time from all; otherwise each sample comes once at most, the heavy ones sooner.
        """

    def window(
        self,
        size: int,
        shift: int | None = ...,
        stride: int = ...,
        drop_last: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Windows over the stream, each stacked into one sample.

        size: Samples in one window.

        shift: How many samples further each window begins; null for `size`.

        stride: From one sample of a window to the next.

        drop_last: Leave out windows at the end that are shorter.
        """

    def window_shuffle(
        self,
        window_size: int,
        within: str | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Random order within windows of consecutive samples.

        window_size: Samples in a window, at most; one keeps the order.

        within: An expression: a window ends where what it gives changes. Null for windows that end when they are full.
        """

    def write_csv(
        self,
        pattern: str,
        shard_size: int | None = ...,
        shard_bytes: int | None = ...,
        overwrite: bool = ...,
        separator: Literal[",", ";", "\t", "|"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples to records of CSV.

        pattern: The files, such as `out-{:05}.csv`; `{rank}` and `{epoch}` may stand in it too.

        shard_size: The most samples in a file.

        shard_bytes: A file is full with so many bytes; 1 GiB unless one of both is given.

        overwrite: Replace files that are there already.

        separator: What stands between fields.
        """

    def write_ipc(
        self,
        pattern: str,
        shard_size: int | None = ...,
        shard_bytes: int | None = ...,
        overwrite: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples to Arrow IPC files.

        pattern: The files, such as `out-{:05}.arrow`; `{rank}` and `{epoch}` may stand in it too.

        shard_size: The most samples in a file.

        shard_bytes: A file is full with about so many bytes; 1 GiB unless one of both is given.

        overwrite: Replace files that are there already.
        """

    def write_jsonl(
        self,
        pattern: str,
        shard_size: int | None = ...,
        shard_bytes: int | None = ...,
        overwrite: bool = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples to lines of JSON.

        pattern: The files, such as `out-{:05}.jsonl`; `{rank}` and `{epoch}` may stand in it too.

        shard_size: The most samples in a file.

        shard_bytes: A file is full with so many bytes; 1 GiB unless one of both is given.

        overwrite: Replace files that are there already.
        """

    def write_parquet(
        self,
        pattern: str,
        shard_size: int | None = ...,
        shard_bytes: int | None = ...,
        overwrite: bool = ...,
        compression: Literal["zstd", "snappy", "none"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples to Parquet files.

        pattern: The files, such as `out-{:05}.parquet`; `{rank}` and `{epoch}` may stand in it too.

        shard_size: The most samples in a file.

        shard_bytes: A file is full with about so many bytes; 1 GiB unless one of both is given.

        overwrite: Replace files that are there already.

        compression: How pages are packed.
        """

    def write_tar(
        self,
        pattern: str,
        shard_size: int | None = ...,
        shard_bytes: int | None = ...,
        overwrite: bool = ...,
        keys: Literal["source", "number"] = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """Samples to tar shards.

        pattern: The files, such as `out-{:05}.tar`; `{rank}` and `{epoch}` may stand in it too.

        shard_size: The most samples in a file.

        shard_bytes: A file is full with so many bytes; 1 GiB unless one of both is given.

        overwrite: Replace files that are there already.

        keys: What members are called: as the sample where it came from, or by its number in the file.
        """

    def zip(
        self,
        mode: Literal["shortest", "strict", "longest"] = ...,
        prefix: Sequence[str] | None = ...,
        fill: Any = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The fields of one sample of each input in one sample.

        mode: For inputs that are not equally long: `shortest` ends with the first that ends, `strict` fails, `longest` goes on with `fill` in their place.

        prefix: What to put before the names of each input's fields, one text for each input; null when no name comes twice.

        fill: What `longest` gives for each field of an input that has ended: null, a truth value, a number or a text.
        """

    def zip_by_key(
        self,
        key: str | None = ...,
        left: str | None = ...,
        right: str | None = ...,
        join: Literal["strict", "inner", "left", "outer"] = ...,
        buffer: int = ...,
        on_full: Literal["fail", "drop_oldest"] = ...,
        prefix: Sequence[str] | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The fields of two samples with one key in one sample.

        key: An expression that gives a sample's key, over those of both inputs; null for the sample's name, or that of its file without folder and extension.

        left: The same for the first input alone.

        right: The same for the second input alone.

        join: What becomes of a sample without a partner: `strict` fails, `inner` leaves it out, `left` goes on with nulls for one of the first input, `outer` for one of either.

        buffer: The most samples of the second input that wait for their partners.

        on_full: When as many wait and the partner is not among them: `fail`, or `drop_oldest`, which takes the oldest for one without a partner.

        prefix: What to put before the names of each input's fields, two texts; null when no name comes twice.
        """

def range(
    stop: int,
    start: int = ...,
    step: int = ...,
    field: str = ...,
    *,
    on_error: str = ...,
    on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
) -> Dataset:
    """Integers from start to before stop, one a sample.

    stop: Where to stop: the first integer that is not given.

    start: The first integer.

    step: From one integer to the next; may be negative, not zero.

    field: The name of the only field.
    """

def concat(
    inputs: Sequence[Dataset] | Dataset,
    *,
    on_error: str = ...,
    on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
) -> Dataset:
    """One input after the other."""

def lookup(
    inputs: Sequence[Dataset] | Dataset,
    key: str | None = ...,
    left: str | None = ...,
    right: str | None = ...,
    join: Literal["strict", "inner", "left"] = ...,
    limit: int = ...,
    prefix: Sequence[str] | None = ...,
    *,
    on_error: str = ...,
    on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
) -> Dataset:
    """The fields of a table's row in each sample that has its key.

    key: An expression that gives a key, over the samples of both inputs; null for the sample's name, or that of its file without folder and extension.

    left: The same for the first input alone.

    right: The same for the rows of the table alone.

    join: What becomes of a sample whose key no row has: `strict` fails, `inner` leaves it out, `left` goes on with nulls.

    limit: The most bytes of the table that are held.

    prefix: What to put before the names of each input's fields, two texts; null when no name comes twice.
    """

def mix(
    inputs: Sequence[Dataset] | Dataset,
    weights: Sequence[float] | None = ...,
    stop: Literal["cycle_until_all_exhausted", "all_exhausted", "first_exhausted", "cycle_forever"] = ...,
    tag: str | None = ...,
    names: Sequence[str] | None = ...,
    draw: Literal["sampled", "proportional"] = ...,
    after: Sequence[int] = ...,
    then: Sequence[float] = ...,
    *,
    on_error: str = ...,
    on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
) -> Dataset:
    """Samples of several inputs, drawn by weight.

    weights: How often each input is drawn, in proportion to the others, a number for each; null for all alike.

    stop: When to stop: `cycle_until_all_exhausted` starts inputs that have ended over, until each has ended once; `all_exhausted` gives each sample once; `first_exhausted` stops with the first input that has ended; `cycle_forever` never does.

    tag: A new field that says which input a sample came from; null for none.

    names: What `tag` calls the inputs; null for their numbers, from 0.

    draw: How inputs are drawn: `sampled`, at random; `proportional`, in an order in which each has its share of the samples, rounded down or up, at every moment.

    after: After how many samples other weights apply, rising: those in `then`.

    then: The weights that apply then, a number for each input, and that again for each number in `after`.
    """

def mux(
    inputs: Sequence[Dataset] | Dataset,
    stop: Literal["shortest", "longest"] = ...,
    block: int = ...,
    *,
    on_error: str = ...,
    on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
) -> Dataset:
    """Samples of each input in turn.

    stop: When to stop: `shortest` as soon as the input whose turn it is has ended, `longest` when all have, leaving out those that have.

    block: Samples of an input before it is the next one's turn.
    """

def zip(
    inputs: Sequence[Dataset] | Dataset,
    mode: Literal["shortest", "strict", "longest"] = ...,
    prefix: Sequence[str] | None = ...,
    fill: Any = ...,
    *,
    on_error: str = ...,
    on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
) -> Dataset:
    """The fields of one sample of each input in one sample.

    mode: For inputs that are not equally long: `shortest` ends with the first that ends, `strict` fails, `longest` goes on with `fill` in their place.

    prefix: What to put before the names of each input's fields, one text for each input; null when no name comes twice.

    fill: What `longest` gives for each field of an input that has ended: null, a truth value, a number or a text.
    """

def zip_by_key(
    inputs: Sequence[Dataset] | Dataset,
    key: str | None = ...,
    left: str | None = ...,
    right: str | None = ...,
    join: Literal["strict", "inner", "left", "outer"] = ...,
    buffer: int = ...,
    on_full: Literal["fail", "drop_oldest"] = ...,
    prefix: Sequence[str] | None = ...,
    *,
    on_error: str = ...,
    on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
) -> Dataset:
    """The fields of two samples with one key in one sample.

    key: An expression that gives a sample's key, over those of both inputs; null for the sample's name, or that of its file without folder and extension.

    left: The same for the first input alone.

    right: The same for the second input alone.

    join: What becomes of a sample without a partner: `strict` fails, `inner` leaves it out, `left` goes on with nulls for one of the first input, `outer` for one of either.

    buffer: The most samples of the second input that wait for their partners.

    on_full: When as many wait and the partner is not among them: `fail`, or `drop_oldest`, which takes the oldest for one without a partner.

    prefix: What to put before the names of each input's fields, two texts; null when no name comes twice.
    """
