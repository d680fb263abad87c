#include "trireme/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "trireme/base/descriptor.h"
#include "trireme/base/system_error.h"
#include "trireme/error.h"

namespace trireme {
namespace {

[[noreturn]] void fail(const std::string& action, const std::filesystem::path& path) {
  throw_system_error(action, path, errno);
}

/// A file that is removed in the end, where it still has its name.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::filesystem::path path) : path_(std::move(path)) {}
  ~TemporaryFile() { ::unlink(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

template <typename Content>
Content read_whole(const std::filesystem::path& path) {
  // Non-blocking, so that opening a pipe nobody writes to cannot hang.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.is_open()) fail("open", path);
  struct stat status{};
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

/// Makes a file that did not exist before; its path.
std::filesystem::path create_beside(const std::filesystem::path& target) {
  constexpr int kMaxAttempts = 100;
  for (int attempt = 0;; ++attempt) {
    std::filesystem::path path = target;
    path += ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(attempt);
    const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
    if (file.is_open()) return path;
    if (errno != EEXIST || attempt == kMaxAttempts) fail("create", path);
  }
}

bool is_folder(const std::filesystem::path& path) {
  std::error_code ignored;  // what cannot be looked at is none
  return std::filesystem::is_directory(path, ignored);
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

/// What a chain of links leads to; it need not exist.
std::filesystem::path target_of(std::filesystem::path path) {
  constexpr int kMaxLinks = 40;  // as Linux follows
  std::error_code problem;
  for (int i = 0; std::filesystem::is_symlink(path, problem); ++i) {
    if (i == kMaxLinks) throw_system_error("follow the link", path, ELOOP);
    const std::filesystem::path target = std::filesystem::read_symlink(path, problem);
    if (problem) throw_system_error("follow the link", path, problem);
    path = folder_of(path) / target;
  }
  return path;
}

const char* name_of_kind(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  return "no regular file";
}

/// A file that is replaced by renaming must be one: else a device would be lost.
void check_is_file(const std::filesystem::path& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return;
    fail("write", path);
  }
  if (S_ISREG(status.st_mode)) return;
  throw Error(ErrorKind::kInvalidArgument, "'" + path.string() + "' is " +
                                               name_of_kind(status.st_mode) +
                                               ", which is not replaced; name a file");
}

}  // namespace

bool is_there(const std::filesystem::path& path) {
  std::error_code ignored;
  return std::filesystem::exists(path, ignored);
}

std::string read_file(const std::filesystem::path& path) { return read_whole<std::string>(path); }

std::vector<std::byte> read_file_bytes(const std::filesystem::path& path) {
  return read_whole<std::vector<std::byte>>(path);
}

void write_atomically(const std::filesystem::path& path,
                      const std::function<void(const std::filesystem::path&)>& write) {
  const std::filesystem::path target = target_of(path);
  check_is_file(target);
  const TemporaryFile temporary(create_beside(target));
  write(temporary.path());
  check_is_file(target);  // writing may have taken long
  if (::rename(temporary.path().c_str(), target.c_str()) != 0) fail("replace", target);
  sync_folder(folder_of(target));
}

void write_file_atomically(const std::filesystem::path& path, std::span<const std::byte> content) {
  write_atomically(path, [content](const std::filesystem::path& temporary) {
    FileWriter file(temporary);
    file.write(content);
    file.finish();
  });
}

void write_file_atomically(const std::filesystem::path& path, std::string_view content) {
  write_file_atomically(path, std::as_bytes(std::span(content.data(), content.size())));
}

FileWriter::FileWriter(std::filesystem::path path)
    : path_(std::move(path)),
      file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
  if (!file_.is_open()) fail("create", path_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  write_all(file_.number(), bytes, path_);
}

void FileWriter::finish() {
  if (::fsync(file_.number()) != 0) fail("sync", path_);
  if (!file_.close()) fail("close", path_);
}

void sync_folder(const std::filesystem::path& folder) {
  const Descriptor file(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.is_open()) fail("open folder", folder);
  // EINVAL: the file system has nothing to sync for folders.
  if (::fsync(file.number()) != 0 && errno != EINVAL) fail("sync folder", folder);
}

void make_folder(const std::filesystem::path& path) {
  if (path.empty() || is_folder(path)) return;
  make_folder(path.parent_path());
  if (::mkdir(path.c_str(), 0777) != 0 && errno != EEXIST) fail("make the folder", path);
  if (!is_folder(path)) throw_system_error("make the folder", path, ENOTDIR);
  sync_folder(folder_of(path));
}

void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail("rename to '" + to.string() + "'", from);
  sync_folder(folder_of(to));
  if (folder_of(from) != folder_of(to)) sync_folder(folder_of(from));
}

void check_writable(const std::filesystem::path& path) {
  const std::filesystem::path target = target_of(path);
  check_is_file(target);
  const std::filesystem::path folder = folder_of(target);
  if (::access(folder.c_str(), W_OK | X_OK) != 0) fail("write into", folder);
}

}  // namespace trireme
