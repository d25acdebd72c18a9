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

        count: How many samples must come.
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

        length: An expression for the length of a sample: a number, or a value that has a length.

        boundaries: The least length of each further bucket, in rising order.

        sizes: Samples in a batch: one number for all buckets, or a list with a number for each. There is one more bucket than boundaries.

        pad_to_boundary: Pad to the greatest length of the bucket: one below its boundary. A sample beyond the last boundary is an error.

        multiple: Round the padded length up to a multiple of this, for the first axis or for each of the first axes, unless `pad_to` sets it.

        fields: The fields to pad; null for all tensors with axes and all lists of numbers.

        values: `field=number`: the number that pads a field; 0 for the others.

        mask: Add a mask for each padded field, of its shape, true where a value was: `_mask` is added to the field's name, or give `field=name`.

        lengths: Add the length of the first axis before padding for each padded field: `_length` is added to the field's name, or give `field=name`.

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

        folder: A folder that keeps samples for later runs too; empty to keep them in memory.

        limit: The most bytes to keep, in a folder of all caches together; by default 1 GiB in memory and 16 GiB in a folder. Beyond that the last samples are kept, and the first are read anew.

        identity: A name for the kept samples in the folder. The loader adds the identity of the graph before the cache and of the files that it reads. It cannot see a change behind a URL.
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

        field: The field with the picture, decoded or not; null for the first field that holds one.
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

        limit: The most bytes to hold behind a sampler.
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

        fields: The columns that become fields; empty for all.

        types: The type of cells: `text`, `auto`, `int`, `float` or `bool`; or an object with a type for some columns, and text for the others.

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

        separator: The character between fields, in ASCII. Empty: a tab in files called `.tsv` or `.tab`, else a comma; if the first record has no comma, the semicolon, tab or bar that it has.

        quote: The character around fields, in ASCII; empty for none.

        comment: Skip lines that begin with this ASCII character; empty to skip none.

        header: The first record has the names of the columns.

        names: The names of the columns, instead of those in the header. Without both they are `column_1` and so on.

        block: About how many bytes a block has.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        decoders: `field=decoder`, for each field whose decoder you choose yourself.

        strict: Fail on bytes that no decoder takes; null fails for those in `fields` only.
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

        field: The field with the animation's bytes; null for the first field that begins like a picture.

        delays: A new field for the milliseconds of each frame, a float64 tensor [frames]; null for none.

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

        fields: The fields to unpack; null for all fields whose names end like those of packed files, such as `json.gz`, or else `bytes`. If a sample has no `bytes`, the file at its `path` is unpacked.

        codec: The compression. `auto` looks at the first bytes, and leaves values that are not packed as they are.

        rename: Take the extension of packing off the names of unpacked fields: `json.gz` becomes `json`.

        first: Unpack at most so many bytes, to look at them: no more of the file is read than they take.
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

        field: The field that chooses a sample's output; null to deal samples out in turn.

        count: How many outputs there are.

        values: The value of the field for each output, in order; null for the numbers from 0.

        other: What to do with a sample whose field has another value.

        block: Without `field`: how many samples an output gets before it is the next one's turn.
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

        shuffle: Draw in random order, another one in each epoch.

        drop_last: Leave out the last samples instead of repeating the first ones, so that all ranks get equally many.

        repeat: The numbers of the samples to repeat if ranks lack one; empty for the first ones of the order.

        order: The random order: `forebay` needs no memory; `torch` is the order of `torch.randperm`, at eight bytes a sample.
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

        effort: How much time to spend on a smaller file.

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

        record_bytes: The bytes of a record; null for the size of `dtype`. If `dtype` is smaller, the rest of each record is skipped.

        dtype: The type of a record, as NumPy writes a dtype: `<f4`, or a list of fields, such as `[('label', 'u1'), ('image', 'u1', (3, 32, 32))]`; null for bytes.

        header_bytes: How many bytes precede the first record.

        footer_bytes: How many bytes follow the last record.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        p: The probability of mirroring a picture.

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

        packed: Extensions of packed files: the extension before them belongs to the field's name too, as in `json.gz`.

        by: What the files of a sample share. `extension`: folder and name up to the extension. `folder`: the folder. A pattern for the end of the path, such as `{key}_{field}.png`: the text at `{key}`. A regular expression over the path, such as `(?<key>.*)-(?<field>[a-z]+)[.]png$`: its group `key`.
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

        size: The most samples in a group: a group with so many is complete. Null for no bound.

        buffer: The most samples that wait, of all groups. If so many wait, the largest group is given as it is.

        guaranteed: The fewest samples of a group that is given because the buffer is full; a smaller group is an error. Null for `size`, or one.

        drop_remaining: Leave out groups with fewer samples than guaranteed, at the end too.

        consecutive: Let a sample with another key end the group before it, so that there is one group at a time.
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

        datasets: The datasets to read, by path from `root`; empty for all.

        root: The group where paths start.

        by: What a sample is. `row`: a row of all datasets, which must have equally many. `group`: the datasets of one group in `root`. `auto`: as the file's structure suggests.

        piece_bytes: About how many bytes the rows of a piece take. A piece has whole chunks, at least one, unless a chunk's rows take more than 16 MiB.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        fields: The fields of a sample: keys, or pointers such as `/box/0`; a missing one is null. Empty for every key of an item.

        at: The pointer to the array, such as `/data/rows`; empty if the document is the array.

        duplicates: Of equal keys in an object, the value that counts; or that they are an error.

        invalid_utf8: Bytes that are not UTF-8 and halves of surrogate pairs: an error, or replaced by U+FFFD.

        big_integers: What integers beyond 64 bits become: the nearest float64, or their digits as text.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        fields: The fields of a sample: keys, or pointers such as `/box/0`; a missing one is null. Empty for every key of a row.

        duplicates: Of equal keys in an object, the value that counts; or that they are an error.

        invalid_utf8: Bytes that are not UTF-8 and halves of surrogate pairs: an error, or replaced by U+FFFD.

        big_integers: What integers beyond 64 bits become: the nearest float64, or their digits as text.
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

        classes: The names of the classes; the place of a name is its label. If you give none, the folders in `root` are the classes, sorted, except those that begin with a dot.

        root: The folder with a folder for each class; required without `classes`.

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

        block: About how many bytes a block has; at least 4 MiB for files on other machines.

        rows: How many lines a block has, instead of bytes; 1 to shuffle single lines. The file is read once before its first block.

        index: With `rows`: where to keep an index of the blocks of local files: `beside` each file, or a folder; null for nowhere.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        key: An expression for the key, for both inputs; null for the sample's name, or its file's name without folder and extension.

        left: The expression for the first input only.

        right: The expression for rows of the table only.

        join: What to do with a sample whose key no row has: `strict` fails, `inner` leaves it out, `left` keeps it with nulls.

        limit: The most bytes of the table to hold.

        prefix: A prefix for the fields of each input, two texts; null if no name comes twice.
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

        length: An expression for the length of a sample: a number, or a value that has a length.

        most: The greatest sum of the lengths in a batch.

        buffer: How many samples wait in a buffer, from which the shortest is taken next.

        min: The least length; shorter samples are left out.

        max: The greatest length; longer samples are left out. Null for `most`.

        padding: Count each sample as long as the longest in its batch.

        multiple: Round the padded length up to a multiple of this, for the first axis or for each of the first axes, unless `pad_to` sets it.

        fields: The fields to pad; null for all tensors with axes and all lists of numbers.

        values: `field=number`: the number that pads a field; 0 for the others.

        mask: Add a mask for each padded field, of its shape, true where a value was: `_mask` is added to the field's name, or give `field=name`.

        lengths: Add the length of the first axis before padding for each padded field: `_length` is added to the field's name, or give `field=name`.

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

        weights: How often to draw from each input, in proportion to the others: a number for each; null for all alike.

        stop: When to stop. `cycle_until_all_exhausted` starts ended inputs over until each has ended once. `all_exhausted` gives each sample once. `first_exhausted` stops with the first input that ends. `cycle_forever` never stops.

        tag: A new field for the input that a sample came from; null for none.

        names: The names of the inputs in `tag`; null for their numbers, from 0.

        draw: How to draw. `sampled`: at random. `proportional`: in an order in which each input has its share at every moment, rounded down or up.

        after: The numbers of samples after which the weights in `then` apply, rising.

        then: The weights after each number in `after`: a number for each input, for one number after the other.
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

        stop: When to stop. `shortest`: as soon as the input whose turn it is has ended. `longest`: when all inputs have ended; ended inputs lose their turn.

        block: How many samples an input gives before it is the next one's turn.
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

        mean: The mean of each channel, from 0 to 1; by default ImageNet's.

        std: The standard deviation of each channel, from 0 to 1; by default ImageNet's.

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

        length: Items in a row, for each packed field without a length of its own.

        method: How a sequence finds its row. `first_fit`: the oldest row with room. `best_fit`: the row with the least room left over. `concat`: sequences follow each other and are cut at the end of a row.

        bins: How many rows are filled at a time; `concat` fills one.

        fields: The fields to pack, each as `field` or `field=length`; null for all that hold tensors with axes or lists of numbers.

        meta: The fields kept as a list with a value for each segment; null for all fields that are not packed.

        segments: Add `FIELD_segment_ids`, int32: the number of an item's sequence in its row, from 1; 0 for padding.

        positions: Add `FIELD_positions`, int32: the place of an item in its segment, from 0; 0 for padding.

        pad: The number that fills the rest of a row: a number, or `field=number`, one or a list.

        bos: A token before each sequence: a number, or `field=number`, one or a list; null for none.

        eos: A token after each sequence, given in the same way.

        max_per_bin: The most sequences in a row; null for any number.

        too_long: What to do with a sequence that is longer than a row, unless `method` is `concat`: `split` it into pieces, `drop` it, or `truncate` its end.

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

        multiple: Give a multiple of this many.

        ranks: Count `count` and `multiple` for each rank, so that all ranks get equally many samples and batches.

        field: A new field: true for samples that came, false for samples that were added.
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

        pad_to: The padded length of the first axis, or of each of the first axes. 0, null and further axes take the longest in the batch.

        multiple: Round the padded length up to a multiple of this, for the first axis or for each of the first axes, unless `pad_to` sets it.

        fields: The fields to pad; null for all tensors with axes and all lists of numbers.

        values: `field=number`: the number that pads a field; 0 for the others.

        mask: Add a mask for each padded field, of its shape, true where a value was: `_mask` is added to the field's name, or give `field=name`.

        lengths: Add the length of the first axis before padding for each padded field: `_length` is added to the field's name, or give `field=name`.

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

        field: The field with the message; it is removed.

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

        ahead: How many samples wait while their files are fetched.

        bytes: How many bytes to fetch of each file, from its start; the store has bounds of its own.

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

        fields: The fields that become ragged in every batch; null for lists of numbers and for tensors whose lengths differ.

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

        scale: The least and greatest share of the picture's area.

        ratio: The least and greatest ratio of width to height.

        filter: How to compute the new pixels.

        field: The field with the picture, decoded or not; null for the first field that holds one.
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

        replacement: Draw each time from all samples, so some come often and others never.

        num_samples: How many samples to draw; null for as many as there are. More than that, without replacement, begins another order of all.
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

        weights: The size of each part, in proportion to the others: numbers above 0.

        take: Give only this part, by its number from 0, or these parts as one stream; null to give all.

        count: How many outputs there are: one for each part, or one in all with `take`.

        seed: The seed of the draws; null for the run's seed.
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

        open: How to open a file: `mmap` maps it without a copy, `read` reads it into memory. Both read URLs into memory.
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

        arrow: Keep every column as an Arrow value, also numbers, so that types stay as they are in the file.
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

        target: The wanted frequency of each class, in proportion to the others; 0 for none of it.

        initial: The frequency of each class in the input, in proportion to the others; null to count while reading.

        values: The value of the field for each class, in order; null for the numbers from 0.
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

        fields: `old=new`, for each field to rename; all at once, so two fields can swap names. In `jpg;png=image` the first of the old names that a sample has gets the new one.

        missing: What to do with a sample that has none of the old names: `fail`, or `keep` its names as they are.
        """

    def repeat(
        self,
        count: int | None = ...,
        *,
        on_error: str = ...,
        on: Literal["threads", "own_thread", "process", "sandboxed"] = ...,
    ) -> Dataset:
        """The whole stream several times.

        count: How often to give the whole stream; null for no end.
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

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        filter: How to compute the new pixels.

        shorter: Keep the aspect ratio, and make the shorter side `size`, which must be one number.

        field: The field with the picture, decoded or not; null for the first field that holds one.
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

        columns: The columns to read; empty for all. `a.b` is `b` within `a`.

        filter: The rows to read: comparisons joined by `and`, such as `label == 3 and split != 'test'`.

        hive: Folders called `name=value` in the path are fields.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        fields: `name=expression`, for each value to carry on: `total=total + value`. Expressions see the sample, and under their names the values for the sample before.

        init: `name=expression`, the value of each before the first sample: `total=0`.
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

        drop_last: Leave out the last round if it lacks a sample for some rank, so that all ranks get equally many.
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

        size: Samples in the buffer. 1 keeps the order; as many as there are samples makes every order equally likely.

        initial: Samples in the buffer before the first one is given; null for `size`. After that the buffer takes two for each that it gives, until it is full.
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

        predicate: An expression such as `step < 1000`. Samples are left out until it is false for the first time.
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

        stop: The sample to stop before; a negative number counts from the end; null for none.

        step: The step from one sample to the next.
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

        size: The most samples to hold.

        reverse: Give the greatest first.

        mode: `buffer` holds `size` samples and always gives the first in order; `window` sorts each `size` samples by themselves.
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

        alone: Give the labels of a label file by themselves, even if the file with their pictures is beside it.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        epochs: Make the `same` choice in every epoch, or choose `anew` for each epoch and pass.

        seed: The seed of a choice that stays the same; null for the run's seed.
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

        indices: The numbers of the samples, in their order; null to take a slice.

        start: The start of the slice, as in Python; a negative number counts from the end; null for the first.

        stop: The sample to stop before, as in Python; null for the end.

        step: The step of the slice; negative goes backwards; not zero.

        shuffle: Draw the samples in random order.
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

        predicate: An expression such as `step < 1000`. The first sample for which it is false ends the stream.
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

        index: Where to keep an index of local files: `beside` each file, or a folder; null for nowhere.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        skip_blank: Leave out lines of white space only.

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

        check: Verify the checksum of each record's data. The checksum of its length is always verified.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        level: How many levels of batches to take apart; -1 for as many as every field has.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        by: One expression or several that tell samples apart: `url`, `lowerAscii(text)`; null for all fields.

        most: The most different samples to remember, at about 40 bytes each; one more is an error.
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

        links: What to do with a hard link: `skip` it, or `follow` it to the earlier file that it names.

        concatenated: Go on after the end of an archive, if another archive follows.

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        interleave: How many samples are open at a time, each giving a block in its turn; with 1, they come one after the other.

        interleave_block: How many samples one gives before it is the next one's turn.
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

        weights: The weight of each sample: a number from 0 up for each, with any sum.

        num_samples: How many samples to draw; null for as many as there are.

        replacement: Draw each time from all samples; otherwise each comes at most once, heavy ones sooner.
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

        shift: How far each window begins behind the one before; null for `size`.

        stride: The step from one sample of a window to the next.

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

        window_size: The most samples in a window; 1 keeps the order.

        within: An expression: a window ends when its value changes. Null for windows that end when they are full.
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

        shard_bytes: About how many bytes a file holds; 1 GiB if neither limit is given.

        overwrite: Replace existing files.

        separator: The character between fields.
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

        shard_bytes: About how many bytes a file holds; 1 GiB if neither limit is given.

        overwrite: Replace existing files.
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

        shard_bytes: About how many bytes a file holds; 1 GiB if neither limit is given.

        overwrite: Replace existing files.
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

        shard_bytes: About how many bytes a file holds; 1 GiB if neither limit is given.

        overwrite: Replace existing files.

        compression: The compression of pages.
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

        shard_bytes: About how many bytes a file holds; 1 GiB if neither limit is given.

        overwrite: Replace existing files.

        keys: The names of members: the sample's own name, or its number in the file.
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

        mode: What to do if inputs are not equally long: `shortest` ends with the first, `strict` fails, `longest` goes on and takes `fill` for ended inputs.

        prefix: A prefix for the fields of each input, one text for each; null if no name comes twice.

        fill: The value that `longest` takes for each field of an ended input: null, a truth value, a number or a text.
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

        key: An expression for a sample's key, for both inputs; null for the sample's name, or its file's name without folder and extension.

        left: The expression for the first input only.

        right: The expression for the second input only.

        join: What to do with a sample without a partner: `strict` fails, `inner` leaves it out, `left` keeps samples of the first input and `outer` those of both, with nulls for the partner.

        buffer: The most samples of the second input that wait for their partners.

        on_full: What to do if the buffer is full without the partner: `fail`, or `drop_oldest`, which treats the oldest as a sample without a partner.

        prefix: A prefix for the fields of each input, two texts; null if no name comes twice.
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

    stop: The integer to stop before.

    start: The first integer.

    step: The step from one integer to the next; negative or positive, not zero.

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

    key: An expression for the key, for both inputs; null for the sample's name, or its file's name without folder and extension.

    left: The expression for the first input only.

    right: The expression for rows of the table only.

    join: What to do with a sample whose key no row has: `strict` fails, `inner` leaves it out, `left` keeps it with nulls.

    limit: The most bytes of the table to hold.

    prefix: A prefix for the fields of each input, two texts; null if no name comes twice.
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

    weights: How often to draw from each input, in proportion to the others: a number for each; null for all alike.

    stop: When to stop. `cycle_until_all_exhausted` starts ended inputs over until each has ended once. `all_exhausted` gives each sample once. `first_exhausted` stops with the first input that ends. `cycle_forever` never stops.

    tag: A new field for the input that a sample came from; null for none.

    names: The names of the inputs in `tag`; null for their numbers, from 0.

    draw: How to draw. `sampled`: at random. `proportional`: in an order in which each input has its share at every moment, rounded down or up.

    after: The numbers of samples after which the weights in `then` apply, rising.

    then: The weights after each number in `after`: a number for each input, for one number after the other.
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

    stop: When to stop. `shortest`: as soon as the input whose turn it is has ended. `longest`: when all inputs have ended; ended inputs lose their turn.

    block: How many samples an input gives before it is the next one's turn.
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

    mode: What to do if inputs are not equally long: `shortest` ends with the first, `strict` fails, `longest` goes on and takes `fill` for ended inputs.

    prefix: A prefix for the fields of each input, one text for each; null if no name comes twice.

    fill: The value that `longest` takes for each field of an ended input: null, a truth value, a number or a text.
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

    key: An expression for a sample's key, for both inputs; null for the sample's name, or its file's name without folder and extension.

    left: The expression for the first input only.

    right: The expression for the second input only.

    join: What to do with a sample without a partner: `strict` fails, `inner` leaves it out, `left` keeps samples of the first input and `outer` those of both, with nulls for the partner.

    buffer: The most samples of the second input that wait for their partners.

    on_full: What to do if the buffer is full without the partner: `fail`, or `drop_oldest`, which treats the oldest as a sample without a partner.

    prefix: A prefix for the fields of each input, two texts; null if no name comes twice.
    """
