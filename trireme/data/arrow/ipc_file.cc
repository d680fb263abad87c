#include "trireme/data/arrow/ipc_file.h"

#include <arrow/buffer.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/dictionary.h>
#include <arrow/ipc/message.h>
#include <arrow/ipc/reader.h>
#include <arrow/record_batch.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <string_view>
#include <utility>

#include "trireme/base/system_error.h"
#include "trireme/data/arrow/columns.h"
#include "trireme/data/arrow/status.h"
#include "trireme/error.h"

namespace trireme::data {
namespace {

namespace ipc = arrow::ipc;
using Batch = std::shared_ptr<arrow::RecordBatch>;

constexpr std::string_view kMagic = "ARROW1";
constexpr std::string_view kOldMagic = "FEA1";
constexpr std::string_view kEnd{"\xff\xff\xff\xff\0\0\0\0", 8};  // of a stream
constexpr std::int64_t kHeadBytes = 8;                           // magic, and filled up

/// A whole file in memory, for Arrow.
class MappedBuffer : public arrow::Buffer {
 public:
  explicit MappedBuffer(int descriptor) : Buffer(nullptr, 0) {
    struct stat status{};
    if (::fstat(descriptor, &status) != 0) throw_system_error("inspect it", errno);
    size_ = capacity_ = status.st_size;
    void* begin =
        ::mmap(nullptr, static_cast<std::size_t>(size_), PROT_READ, MAP_SHARED, descriptor, 0);
    if (begin == MAP_FAILED) throw_system_error("map it", errno);
    data_ = static_cast<const std::uint8_t*>(begin);
  }
  ~MappedBuffer() override {
    ::munmap(const_cast<std::uint8_t*>(data_), static_cast<std::size_t>(size_));
  }
  MappedBuffer(const MappedBuffer&) = delete;
  MappedBuffer& operator=(const MappedBuffer&) = delete;

  std::string_view text() const {
    return {reinterpret_cast<const char*>(data_), static_cast<std::size_t>(size_)};
  }
  std::span<const std::byte> bytes() const { return std::as_bytes(std::span(text())); }
};

bool has_dictionary(const arrow::DataType& type) {
  const auto is_encoded = [](const auto& field) { return has_dictionary(*field->type()); };
  return type.id() == arrow::Type::DICTIONARY || std::ranges::any_of(type.fields(), is_encoded);
}

/// Of one column alone: of others nothing is unpacked.
ipc::IpcReadOptions options_for(int field) {
  ipc::IpcReadOptions options;
  options.use_threads = false;
  options.included_fields = {field};
  options.ensure_alignment = ipc::Alignment::kDataTypeSpecificAlignment;
  return options;
}

class IpcFile : public TableFile {
 public:
  explicit IpcFile(int descriptor) : mapped_(std::make_shared<MappedBuffer>(descriptor)) {
    if (mapped_->text().starts_with(kOldMagic)) {
      throw Error(ErrorKind::kInvalidArgument, "is Feather of version 1; write it as version 2");
    }
    is_file_ = mapped_->text().starts_with(kMagic);
    read_messages();
    if (is_file_) {
      check_footer();
    } else if (!mapped_->text().ends_with(kEnd)) {
      throw Error(ErrorKind::kCorruptData,
                  "is cut off, or its writer was not closed: it has no end");
    }
    for (ArrowColumn& column : columns_of(*schema_)) {
      if (!is_file_ && is_encoded(column.field)) {
        column.column.is_read = false;
        column.column.type += " of a stream";
      }
      columns_.push_back(column.column);
      places_.push_back(std::move(column));
    }
  }

  const std::vector<TableColumn>& columns() const override { return columns_; }
  const std::vector<std::int64_t>& num_rows() const override { return num_rows_; }
  bool is_mapped() const override { return true; }

  std::unique_ptr<const ColumnValues> read(int, int group, int column) const override {
    const ArrowColumn& place = places_[static_cast<std::size_t>(column)];
    const Batch batch = batch_of(group, place.field);
    return make_values({inner_array(batch->column(0), place.steps)}, mapped_->bytes());
  }

 private:
  /// A file is a stream with a magic in front and a footer behind.
  void read_messages() {
    const std::int64_t begin = is_file_ ? kHeadBytes : 0;
    if (mapped_->size() < begin) throw Error(ErrorKind::kCorruptData, "is cut off");
    const auto reader = ipc::MessageReader::Open(
        std::make_shared<arrow::io::BufferReader>(arrow::SliceBuffer(mapped_, begin)));
    const auto next = [&] { return value_of(reader->ReadNextMessage(), "opened as Arrow"); };
    const std::unique_ptr<ipc::Message> first = next();
    if (!first) throw Error(ErrorKind::kCorruptData, "cannot be opened as Arrow: it has no schema");
    ipc::DictionaryMemo memo;
    schema_ = value_of(ipc::ReadSchema(*first, &memo), "opened as Arrow");
    const auto none = arrow::schema({});  // no columns, but the number of rows
    while (std::shared_ptr<ipc::Message> message = next()) {
      if (message->type() != ipc::MessageType::RECORD_BATCH) continue;
      const Batch batch =
          value_of(ipc::ReadRecordBatch(*message, none, &memo, ipc::IpcReadOptions()), "opened");
      if (batch->num_rows() < 0)
        throw Error(ErrorKind::kCorruptData, "is damaged: it has a batch of less than no rows");
      num_rows_.push_back(batch->num_rows());
      messages_.push_back(std::move(message));
    }
  }

  void check_footer() const {
    arrow::io::BufferReader file(mapped_);
    const auto reader = value_of(ipc::RecordBatchFileReader::Open(&file), "opened as Arrow");
    if (reader->num_record_batches() == std::ssize(num_rows_)) return;
    throw Error(ErrorKind::kCorruptData, "is damaged: its footer knows " +
                                             std::to_string(reader->num_record_batches()) + " of " +
                                             std::to_string(num_rows_.size()) + " record batches");
  }

  bool is_encoded(int field) const { return has_dictionary(*schema_->field(field)->type()); }

  Batch batch_of(int group, int field) const {
    const auto options = options_for(field);
    if (is_encoded(field)) {
      // Only Arrow's own reader knows dictionaries. It has a state: each call takes its own, and parses the footer again.
      arrow::io::BufferReader file(mapped_);
      const auto reader = value_of(ipc::RecordBatchFileReader::Open(&file, options), "decoded");
      return value_of(reader->ReadRecordBatch(group), "decoded");
    }
    const ipc::DictionaryMemo none;
    const auto& message = *messages_[static_cast<std::size_t>(group)];
    return value_of(ipc::ReadRecordBatch(message, schema_, &none, options), "decoded");
  }

  std::shared_ptr<MappedBuffer> mapped_;  ///< Shared with what Arrow makes of it.
  bool is_file_ = false;
  std::shared_ptr<arrow::Schema> schema_;
  std::vector<std::shared_ptr<ipc::Message>> messages_;  ///< The record batches.
  std::vector<TableColumn> columns_;
  std::vector<ArrowColumn> places_;
  std::vector<std::int64_t> num_rows_;
};

}  // namespace

std::unique_ptr<const TableFile> open_ipc(int descriptor) {
  return std::make_unique<IpcFile>(descriptor);
}

}  // namespace trireme::data
