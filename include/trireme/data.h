#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/dtype.h"

namespace trireme::data {

/// How long dimensions are that differ from sample to sample, by name: {{"words", 57}}.
using Lengths = std::map<std::string, std::int64_t>;

/// One tensor of a sample.
struct Field {
  std::string name;
  Dtype dtype = Dtype::kF32;
  std::vector<std::int64_t> shape;          ///< Of one sample, without the batch; of the longest.
  std::map<int, std::string> varying = {};  ///< Dimensions whose length differs, with its name.
  double padding = 0;                       ///< What is put behind a sample that is shorter.

  /// Of a sample of these lengths. kInvalidArgument where one is missing or more than the field has.
  std::vector<std::int64_t> shape_at(const Lengths& lengths) const;

  /// Of the longest sample. kInvalidArgument for a negative dimension or beyond 64 bits.
  std::int64_t num_bytes() const;
  /// Of a sample of these lengths. Errors of `shape_at` too.
  std::int64_t num_bytes(const Lengths& lengths) const;
  bool operator==(const Field&) const = default;
};

/// One sample as an order meets it.
struct Sample {
  std::int64_t index = 0;
  std::int64_t visit =
      0;  ///< How often it came before: the epoch; of several uses in each, epoch * times + use.
};

/// How often a training uses a sample before it goes on to others (`repeat`). Changes results.
struct SampleRepeats {
  std::int64_t times = 1;              ///< 1 to 2^20.
  std::int64_t block_samples = 2'048;  ///< That are in use at a time, of all ranks together.
  bool operator==(const SampleRepeats&) const = default;
};

/// Samples by index. Thread-safe: every method is const.
class Source {
 public:
  virtual ~Source() = default;

  virtual std::int64_t num_samples() const = 0;

  virtual const std::vector<Field>& fields() const = 0;

  /// Where dimensions differ from sample to sample: the lengths to which the samples of a microbatch are padded, shortest
  /// first. Taken is the first that holds all of them; the last holds every sample. Each is a shape that the model is recorded
  /// at: few are better. Empty: nothing differs.
  virtual std::vector<Lengths> padded_lengths() const { return {}; }

  /// A sample's own lengths, every name of `padded_lengths()`. A pure function; cheap: called for all samples of a step by
  /// every rank. Errors as of `read`.
  virtual Lengths lengths_of(Sample sample) const;

  /// Copies a sample out: `destinations[f]` gets the bytes of field f, at the sample's own lengths, dense in C order, and is
  /// just as long. A pure function of the sample; a source may make it differ from visit to visit.
  ///
  /// Errors   kInvalidArgument for an index out of range or destinations that do not fit; kIo and
  ///          kCorruptData from the medium. May block.
  virtual void read(Sample sample, std::span<const std::span<std::byte>> destinations) const = 0;

  /// Told which samples are read soon, in the order in which they are wanted, so that a source may begin to fetch them. A hint:
  /// results do not depend on it, and a sample that is told again before it is read counts once. Does not wait for the medium,
  /// but may open files.
  ///
  /// Errors   kInvalidArgument for an index out of range. What the medium cannot do is no error here: `read` says it. A training
  ///          ends by an error of this method when it comes to those samples, not before.
  /// Threads  called beside `read`, as that one by several threads. Samples are read in any order, and need not be read at all.
  virtual void will_read(std::span<const Sample> samples) const;

  /// How samples are read here, in words, for people; empty where there is nothing to say.
  virtual std::string reading() const { return {}; }

  /// Tells these samples from others, for a run that resumes; empty where the source cannot say.
  virtual std::string identity() const { return {}; }

  /// How a training shall repeat samples; `read` has nothing to do with it. Times 0: not by itself, as each visit is a place in
  /// an order of the source's own (mix).
  virtual SampleRepeats repeats() const { return {}; }
};

/// `identity`, or for a source that has none `sampled` and the SHA-256 of its number of samples, its
/// fields and up to 64 samples spread over it: other data of the same form are told apart, a change
/// of few samples may not be.
///
/// Errors   those of Source::read.
std::string fingerprint(const Source& source);

/// Samples in memory that others may share. Immutable.
class InMemorySource : public Source {
 public:
  /// One field for all samples: `data` points at [num_samples, ...shape], dense in C order, and
  /// keeps it alive.
  struct Column {
    Field field;
    std::shared_ptr<const void> data;
  };

  /// Errors   kInvalidArgument: no column, negative number of samples, two fields of one name, or
  ///          a column without data though it has bytes.
  InMemorySource(std::int64_t num_samples, std::vector<Column> columns);

  std::int64_t num_samples() const override { return num_samples_; }
  const std::vector<Field>& fields() const override { return fields_; }
  void read(Sample sample, std::span<const std::span<std::byte>> destinations) const override;

  /// SHA-256 of the number of samples, all fields and their data. Cost: a pass over the data.
  std::string identity() const override;

 private:
  std::int64_t num_samples_;
  std::vector<Field> fields_;
  std::vector<std::int64_t> bytes_;  ///< Of one sample, per field.
  std::vector<std::shared_ptr<const void>> data_;
};

/// A source in a mixture, and how many samples of a round are its.
struct MixturePart {
  std::shared_ptr<const Source> source;
  std::int64_t weight = 1;
};

/// Changes results.
struct MixtureOptions {
  std::uint64_t seed = 0;  ///< Of the sources' orders.
  bool shuffled = true;    ///< Each source anew in each of its epochs; else it is met as it lies.
  std::int64_t num_samples =
      0;  ///< Of an epoch of the mixture; 0: as many as the sources have together.
};

/// Samples of several sources, one after the other in proportion to their weights: `a` with 2 and `b` with 1 give rounds of
/// `a b a`. The n-th sample of the mixture, counted through all of its epochs, is the m-th of one source, in that source's own
/// order of epochs, where each of its samples is met once; m is how often the mixture has met that source before. So a place in
/// the data is one number, n, and which sample stands there depends on weights and seed alone.
///
/// It has its order already: train with `TrainingOptions::shuffled = false`, or the samples of each of its epochs are mixed once
/// more, and a batch has the proportions by chance only.
///
/// Errors   kInvalidArgument without parts, for a source that is empty or whose fields or padded lengths are not those of the
///          first, for weights below 1, or above 2^20 in sum once what divides all is taken out. Of `read`: those of the source.
/// Cost     8 bytes of memory a sample of a round.
std::shared_ptr<const Source> mix(std::vector<MixturePart> parts,
                                  const MixtureOptions& options = {});

/// `source`, whose samples a training uses `times` times each before it drops them: what is dear to read or decode is so once for
/// several steps, where it does not fit into memory ("data echoing"; an input batch multiplier).
///
/// Order    An epoch's order is cut into blocks of `block_samples`, whole batches, at least one; the last has what is left. Each
///          block is met `times` times before the next one, each time in other batches, so an epoch has num_samples * times
///          places. A sample keeps its place within the batch, and so its rank, in all passes of a block, but for less than a
///          batch of the last block. Which sample stands at a place depends on seed, batch and place alone.
/// Visits   `Sample::visit` is epoch * times + pass: a source with random views shows another one each time. Of a mixture
///          the part's epoch counts. Evaluations and the number of samples are those of `source`; `times` 1 changes nothing.
///
/// Errors   kInvalidArgument without a source, for numbers out of range, and for a source that repeats already.
/// Source   Choi et al., "Faster neural network training with data echoing", arXiv:1907.05550, section 2.
std::shared_ptr<const Source> repeat(std::shared_ptr<const Source> source,
                                     const SampleRepeats& options);

/// What is done about damaged samples.
struct SkipOptions {
  std::int64_t max_skipped =
      0;  ///< Of different samples, each process by itself; beyond, reading fails.
  std::filesystem::path
      quarantine;  ///< Gets a line of JSON for each: {"error":"..","sample":7}. None: no file.
};

/// `source`, where a sample that is damaged (kCorruptData) is replaced by the next one, by index, that is whole and as long.
///
/// What replaces a sample depends on the files alone: it is the same on all ranks and threads, in every visit and after a
/// resume. Other errors, as of a file that is gone, may be one machine's, and are never skipped. When reading fails is each
/// process's own matter, as it counts what it has met; so a run may end, but never differ. Of a mixture, wrap its parts.
/// Fields that are of another kind from some shard on are damage too: a small budget finds them.
///
/// Errors   of `read` and `lengths_of`: those of the source; kCorruptData with the sample's own message beyond the budget,
///          or where no sample can replace it; kIo for the quarantine file. kInvalidArgument for a budget below 0.
/// Threads  as the source. The quarantine file may be shared by processes: each appends a line for each sample it skips.
std::shared_ptr<const Source> skip_damaged(std::shared_ptr<const Source> source,
                                           const SkipOptions& options);

/// How samples of different lengths are put into rows. Changes results.
struct PackOptions {
  Lengths row;  ///< Of a row, every name of `padded_lengths()`; none: those of the longest sample.
  std::int64_t max_segments = 32;  ///< Samples of a row at most.
  std::int64_t open_rows = 64;     ///< That are filled at a time.
};

/// Samples of different lengths behind each other in rows of one length, each row a sample of its own: little is padding, and a
/// model is recorded at one shape ("sequence packing"). Samples are taken by index, and each goes into the first of the rows that
/// are being filled which has room for it (first-fit); where none has, into a new one, in whose place the oldest is closed. So
/// neighbours share rows, and rows are those of the source alone, whatever the ranks, threads or the order of the training,
/// which shuffles rows.
///
/// Fields   of a row, S its length, M `max_segments`, k = 0, 1, .. the samples in it:
///              of the source, with a dimension that differs, the first:  [S, ..], one sample behind the other
///              other ones of the source, as labels:                      [M, ..], of sample k at k
///              N_segments   [S] i32: k + 1; behind the samples 0         N: the name of the length, as `words`
///              N_positions  [S] i32: the place within the sample; behind the samples 0
///              N_lengths    [M] i32: of sample k; 0 where there is none
///          Behind the samples stands the field's own padding. A model keeps the samples of a row apart itself: attention masks by
///          `N_segments`, or takes sequences of `N_lengths`.
/// Visits   a row's is that of all its samples.
///
/// Errors   kInvalidArgument without a source, for one without `padded_lengths()`, one that repeats samples or has an order of its
///          own (pack its parts instead), fields with other dimensions that differ than the first, or names as above, numbers
///          out of range, and a sample longer than a row, naming it. Of `lengths_of` of the source. Of `read`: those of the source,
///          and kInvalidArgument for a sample whose lengths are others than before.
/// Cost     blocks: asks for the lengths of all samples once, in every process, and looks at up to `open_rows` rows for each; 8
///          bytes of memory a sample and 8 a row, twice as many until it returns.
std::shared_ptr<const Source> pack(std::shared_ptr<const Source> source,
                                   const PackOptions& options = {});

/// A shared copy of `values`, for `InMemorySource::Column::data`.
template <typename T>
std::shared_ptr<const void> share(std::vector<T> values) {
  auto owner = std::make_shared<const std::vector<T>>(std::move(values));
  return std::shared_ptr<const void>(owner, owner->data());
}

/// Files by record: what belongs together has one index, each part a name, as `jpg` and `cls`. What the
/// bytes mean is a source's business. Thread-safe: every method is const.
class RecordSource {
 public:
  virtual ~RecordSource() = default;

  virtual std::int64_t num_records() const = 0;

  /// Names of the fields of a record, as its form has them.
  ///
  /// Errors   kInvalidArgument for an index out of range, as of all methods below; those of `read`.
  virtual std::vector<std::string> fields(std::int64_t index) const = 0;

  /// The bytes of a field: a pure function of the arguments, as long as nobody changes the files.
  ///
  /// Errors   kInvalidArgument where the record has no such field; kIo and kCorruptData, naming
  ///          file and record, where the file is gone or not what it was, or the field is of another
  ///          kind than in the first shard (a text for a number; lines of JSON and TFRecord);
  ///          kTimeout and kResourceExhausted where it has to be fetched again. Blocking.
  virtual std::vector<std::byte> read(std::int64_t index, std::string_view field) const = 0;

  /// A record in words, for messages: its file, and where it lies there.
  virtual std::string name(std::int64_t index) const = 0;

  /// Tells these records from others, for a run that resumes: a hash of names and sizes, not of
  /// folders that lie above, times or content.
  virtual std::string identity() const = 0;
};

/// Of files that end in `.gz`, `.zst` or `.zstd`. Changes no results.
struct UnpackOptions {
  std::filesystem::path
      folder;  ///< For the unpacked bytes; none: the system's for temporary files.
  std::int64_t max_bytes = std::int64_t{16} << 30;  ///< Of all files of a data set, unpacked.
};

/// How records lie in files, and what their fields are.
enum class RecordForm : std::uint8_t {
  kByName,     ///< As the paths say.
  kFolder,     ///< A folder with a subfolder for each class: a file by its ending, and `cls`.
  kTar,        ///< WebDataset: files of one name, by their endings.
  kJsonLines,  ///< Keys of an object: a text's bytes, JSON of other values.
  kCsv,        ///< Columns.
  kTfrecord,   ///< Features of a tf.train.Example: bytes; numbers as i64 and f32, little-endian.
  kMds,        ///< Columns of MosaicML's streaming: bytes of their encoding.
  kParquet,  ///< Columns: text's bytes; numbers and lists of them as wide as they are, little-endian.
  kArrow,    ///< The same of Arrow's IPC: Feather, `.arrow` of Hugging Face's datasets.
};

/// Changes results, but for `unpack` and `cache_bytes`.
struct RecordFileOptions {
  RecordForm form = RecordForm::kByName;

  /// Of kFolder: which files, by their endings in small letters, and classes by number; none: the subfolders, sorted.
  std::vector<std::string> suffixes = {".jpg", ".jpeg", ".png"};
  std::vector<std::string> classes;

  /// Of kCsv: names of the columns, none: each file's first row; what separates values, none: a tab in `.tsv`, else a comma;
  /// whether they may stand in quotes.
  std::vector<std::string> columns;
  std::optional<char> separator;
  bool has_quotes = true;

  UnpackOptions unpack;

  /// Of kParquet and kArrow: columns of groups of rows that are kept decoded, of all files, in each process.
  std::int64_t cache_bytes = std::int64_t{256} << 20;
};

/// Opens files of records, or a folder of them, sorted by name, by what they are called:
///
///     x.tar | x.jsonl, x.ndjson | x.csv, x.tsv | x.tfrecord, x.tfrecords      all but tar also .gz, .zst, .zstd
///     x.parquet | x.arrow, x.feather                                          as they are compressed inside
///     a folder with index.json (MDS); one of files of one form; one with a subfolder for each class
///
/// A file may lie elsewhere: `s3://bucket/key`, `gs://bucket/key`, `https://host/path`; so may a folder of a bucket, `s3://bucket/train/`,
/// and one with index.json. They are fetched now, into a cache of this host (docs/environment.md), where they are read.
///
/// Records are those of the first file, then of the next one. Headers or whole files are read, once.
///
/// Errors   kInvalidArgument, naming the forms that are known, for other paths, or several forms; those of the form
///          (trireme/data/*_records.h): kCorruptData, naming file and record, for one that is damaged or cut off; kIo. Of files
///          elsewhere kTimeout too, and kResourceExhausted where the cache has no room. Of Parquet and Arrow kUnavailable,
///          saying what to install, where their libraries are not there.
std::shared_ptr<const RecordSource> open_records(const std::vector<std::filesystem::path>& paths,
                                                 const RecordFileOptions& options = {});

/// How files are read. Changes speed only.
enum class FileAccess : std::uint8_t {
  kBySize,  ///< kDirect for files that are larger than half of this machine's memory, else kBuffered.
  kDirect,  ///< Past the system's cache (O_DIRECT), by io_uring; kBuffered where one of both is not to be had.
  kBuffered,  ///< Through the system's cache of files.
};

/// Records that are all of one size, one after the other, as of logs of clicks.
struct FixedRecordOptions {
  /// What a record holds, in the order in which it lies there, little-endian and without gaps; those without a name are passed
  /// over. Changes results, as `header_bytes` does.
  std::vector<Field> fields;
  std::int64_t header_bytes = 0;  ///< In front of the records of each file.

  FileAccess access = FileAccess::kBySize;

  /// Of kDirect, of each source in each process: requests that the disk has at a time, its queue's depth, 1 to 4096; and bytes
  /// that are read ahead of `Source::read` at most.
  int num_in_flight = 64;
  std::int64_t ahead_bytes = std::int64_t{64} << 20;
};

/// Samples that lie in files as records of one size; those of the first file, then of the next one. The files may lie elsewhere, as
/// `open_records` has it; they are not compressed. `Source::reading` says how they are read, and why.
///
/// What `Source::will_read` names is read ahead, several records at once where they are neighbours: a training tells its next
/// microbatches. Should io_uring fail later, records are read one by one from then on, as `Source::reading` says. Files stay
/// open, up to 256 of them. A child process made by fork may use its parent's source, and reads by itself, nothing ahead; one
/// that it opens reads ahead as ever.
///
/// Errors   kInvalidArgument without files, fields or bytes in them, for fields of one name or of lengths that differ, for
///          compressed files, and for numbers out of range; kCorruptData, naming the file, where it holds no whole number of
///          records; kIo; those of files elsewhere. Of `read`: kIo, and kCorruptData where a file has got shorter, naming file and
///          record.
/// Cost     no memory for a record that nobody has asked for.
std::shared_ptr<const Source> open_fixed_records(const std::vector<std::filesystem::path>& paths,
                                                 const FixedRecordOptions& options);

}  // namespace trireme::data
