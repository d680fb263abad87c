#include "trireme/wire/endpoint/domains.h"

namespace trireme::transport {

std::shared_ptr<Failure> DomainBoard::open(const Domain& domain) {
  const std::lock_guard lock(mutex_);
  auto failure = std::make_shared<Failure>(world_);
  const auto own = failures_.find(domain.first_tag);
  const auto of_parent = domain.parent ? failures_.find(*domain.parent) : failures_.end();
  if (own != failures_.end()) failure->set(own->second);
  if (of_parent != failures_.end()) {
    failure->set(of_parent->second);
    failures_.try_emplace(domain.first_tag, of_parent->second);
  }
  if (const auto error = world_->error()) failure->set(*error);
  open_.insert_or_assign(domain.first_tag, Entry{domain, failure});
  return failure;
}

void DomainBoard::close(Tag first_tag) {
  const std::lock_guard lock(mutex_);
  open_.erase(first_tag);
}

std::vector<Tag> DomainBoard::fail(Tag first_tag, const Error& error) {
  const std::lock_guard lock(mutex_);
  std::vector<Tag> failed;
  fail_below(first_tag, error, failed);
  return failed;
}

void DomainBoard::fail_below(Tag first_tag, const Error& error, std::vector<Tag>& failed) {
  if (!failures_.try_emplace(first_tag, error).second) return;
  has_failures_.store(true, std::memory_order_release);
  failed.push_back(first_tag);
  const auto own = open_.find(first_tag);
  if (own != open_.end()) own->second.failure->set(error);
  for (const auto& [tag, entry] : open_) {
    if (entry.domain.parent == first_tag) fail_below(tag, error, failed);
  }
}

void DomainBoard::fail_all(const Error& error) {
  const std::lock_guard lock(mutex_);
  for (const auto& [tag, entry] : open_) entry.failure->set(error);
}

std::optional<Error> DomainBoard::failure_of(Tag tag) const {
  if (!has_failures_.load(std::memory_order_acquire)) return std::nullopt;
  const std::lock_guard lock(mutex_);
  const auto found = failures_.find(domain_of(tag));
  return found == failures_.end() ? std::nullopt : std::optional(found->second);
}

bool DomainBoard::has_failed(Tag tag) const {
  if (!has_failures_.load(std::memory_order_acquire)) return false;
  const std::lock_guard lock(mutex_);
  return failures_.contains(domain_of(tag));
}

bool DomainBoard::contains(Tag tag) const {
  const std::lock_guard lock(mutex_);
  return open_.contains(domain_of(tag));
}

std::vector<int> DomainBoard::ranks_of(Tag first_tag) const {
  const std::lock_guard lock(mutex_);
  const auto found = open_.find(first_tag);
  return found == open_.end() ? std::vector<int>() : found->second.domain.ranks;
}

}  // namespace trireme::transport
