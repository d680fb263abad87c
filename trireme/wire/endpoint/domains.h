#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "trireme/error.h"
#include "trireme/wire/bootstrap/failure.h"
#include "trireme/wire/endpoint/messages.h"

namespace trireme::transport {

/// The eight tags of a failure domain begin at one that 8 divides.
constexpr Tag domain_of(Tag tag) { return tag & ~Tag{7}; }

/// The last of them is that of large messages' payloads (messages.h).
constexpr Tag payload_tag(Tag domain) { return domain | Tag{7}; }

/// Ranks whose messages under some tags fail together, apart from the rest of the world.
struct Domain {
  Tag first_tag = 0;          ///< Of eight; with the highest bit set.
  std::vector<int> ranks;     ///< World ranks, the own one among them.
  std::optional<Tag> parent;  ///< First tag of the domain whose failure is this one's too.
};

/// The failure domains of an endpoint: those of groups.
///
/// The first failure of a domain stays. It fails all works of its tags and those of its children,
/// now and later, on all ranks; its ranks are told at once. Nothing else of the world is touched.
/// What ends the world ends every domain.
///
/// A message of a domain that its receiver refuses (another size, an inspection that throws) fails
/// the domain; of other tags, the world.
///
/// Threads  safe from any thread.
class Domains {
 public:
  virtual ~Domains() = default;

  /// Returns what will say that it has failed; it may have before, on another rank.
  virtual std::shared_ptr<Failure> open(const Domain& domain) = 0;

  /// No call for it will come. What is left of its messages (messages.h) fails it on the other
  /// ranks. A failure of it stays.
  virtual void close(Tag first_tag) = 0;

  /// This rank has failed in it. When it returns, its works here have ended, but for those whose
  /// memory a peer reads at the moment (they end within 2 s), and its ranks have been written to.
  virtual void fail(Tag first_tag, const Error& error) = 0;
};

/// What an endpoint knows of its domains.
///
/// Threads  safe from any thread.
class DomainBoard {
 public:
  /// world   that has failed fails every domain.
  explicit DomainBoard(std::shared_ptr<Failure> world) : world_(std::move(world)) {}

  std::shared_ptr<Failure> open(const Domain& domain);
  void close(Tag first_tag);

  /// Fails a domain, known or not, and its children: the first tags of those that had not failed.
  std::vector<Tag> fail(Tag first_tag, const Error& error);

  /// The world has failed.
  void fail_all(const Error& error);

  /// The error of the domain to which a tag belongs; nothing while it is well. One load where no
  /// domain has failed.
  std::optional<Error> failure_of(Tag tag) const;
  bool has_failed(Tag tag) const;

  /// Whether a tag belongs to a domain that is open.
  bool contains(Tag tag) const;

  /// World ranks of an open domain.
  std::vector<int> ranks_of(Tag first_tag) const;

 private:
  struct Entry {
    Domain domain;
    std::shared_ptr<Failure> failure;  // shared with who has opened it
  };

  void fail_below(Tag first_tag, const Error& error, std::vector<Tag>& failed);

  const std::shared_ptr<Failure> world_;  // shared with the endpoint
  std::atomic<bool> has_failures_{false};
  mutable std::mutex mutex_;
  std::map<Tag, Entry> open_;
  std::map<Tag, Error> failures_;  ///< By first tag; also of those that are closed or to come.
};

}  // namespace trireme::transport
