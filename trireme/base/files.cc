#include "trireme/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "trireme/base/error.h"

namespace trireme {
namespace {

[[noreturn]] void fail(const std::string& action, const std::filesystem::path& path) {
  const int code = errno;
  const bool is_full = code == ENOSPC || code == EDQUOT || code == EMFILE || code == ENFILE;
  throw Error(
      is_full ? ErrorKind::kResourceExhausted : ErrorKind::kIo,
      "cannot " + action + " '" + path.string() + "': " + std::generic_category().message(code));
}

/// An open file that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return number_; }

  /// Closes now, so that a late write error is seen.
  bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

/// Removes the temporary file unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void keep() { path_.clear(); }

 private:
  std::filesystem::path path_;
};

template <typename Content>
Content read_whole(const std::filesystem::path& path) {
  // Non-blocking, so that opening a pipe nobody writes to cannot hang.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) fail("open", path);
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) fail("inspect", path);
  if (!S_ISREG(status.st_mode)) {
    throw Error(ErrorKind::kInvalidArgument,
                "'" + path.string() + "' is " +
                    (S_ISDIR(status.st_mode) ? "a folder" : "not a regular file") +
                    "; expected a file");
  }
  Content content;
  content.resize(static_cast<std::size_t>(status.st_size));
  for (std::size_t done = 0; done < content.size();) {
    const ssize_t count = ::read(file.number(), content.data() + done, content.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path);
    if (count == 0) {
      throw Error(ErrorKind::kIo, "'" + path.string() + "' got shorter while it was read");
    }
    done += static_cast<std::size_t>(count);
  }
  return content;
}

void write_all(int file, std::span<const std::byte> content, const std::filesystem::path& path) {
  while (!content.empty()) {
    const ssize_t count = ::write(file, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write", path);
    content = content.subspan(static_cast<std::size_t>(count));
  }
}

/// Opens a file that did not exist before; sets `path` to its name.
int create_beside(const std::filesystem::path& target, std::filesystem::path& path) {
  constexpr int kMaxAttempts = 100;
  for (int attempt = 0;; ++attempt) {
    path = target;
    path += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    const int number = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (number >= 0 || errno != EEXIST || attempt == kMaxAttempts) return number;
  }
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

}  // namespace

std::string read_file(const std::filesystem::path& path) { return read_whole<std::string>(path); }

std::vector<std::byte> read_file_bytes(const std::filesystem::path& path) {
  return read_whole<std::vector<std::byte>>(path);
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content) {
  std::filesystem::path temporary;
  Descriptor file(create_beside(path, temporary));
  if (file.number() < 0) fail("create", temporary);
  TemporaryFile guard(temporary);
  write_all(file.number(), content, temporary);
  if (::fsync(file.number()) != 0) fail("sync", temporary);
  if (!file.close()) fail("close", temporary);
  if (::rename(temporary.c_str(), path.c_str()) != 0) fail("replace", path);
  guard.keep();
  sync_folder(folder_of(path));
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  write_file_atomically(path, std::as_bytes(std::span(content.data(), content.size())));
}

FileWriter::FileWriter(std::filesystem::path path)
    : path_(std::move(path)),
      descriptor_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) fail("create", path_);
}

FileWriter::~FileWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void FileWriter::write(std::span<const std::byte> bytes) { write_all(descriptor_, bytes, path_); }

void FileWriter::finish() {
  if (::fsync(descriptor_) != 0) fail("sync", path_);
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close", path_);
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.number() < 0) fail("open folder", folder);
  // EINVAL: the file system has nothing to sync for folders.
  if (::fsync(file.number()) != 0 && errno != EINVAL) fail("sync folder", folder);
}

void make_folder(const std::filesystem::path& path) {
  if (path.empty() || std::filesystem::is_directory(path)) return;
  make_folder(path.parent_path());
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail("make the folder", path);
  if (!std::filesystem::is_directory(path)) {
    errno = ENOTDIR;
    fail("make the folder", path);
  }
  sync_folder(folder_of(path));
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename to '" + to.string() + "'", from);
  sync_folder(folder_of(to));
  if (folder_of(from) != folder_of(to)) sync_folder(folder_of(from));
}

void check_writable(const std::filesystem::path& path) {
  if (std::filesystem::is_directory(path)) {
    errno = EISDIR;
    fail("write", path);
  }
  const std::filesystem::path folder = folder_of(path);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail("write into", folder);
}

}  // namespace trireme
