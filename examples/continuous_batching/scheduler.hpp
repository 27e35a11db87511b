// SPDX-License-Identifier: Apache-2.0
// Which requests a step of a server takes, and in which pages of the pool their tokens lie.
// Requests are admitted while there are pages, prefilled in chunks beside those that decode, and
// retired. Where pages run out, the last one admitted gives its pages up and comes back later: they
// are swapped to another pool, or computed again where that is full. Whole pages of prompts that
// begin alike are shared.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <stdexcept>
#include <vector>

struct Request {
  std::vector<int> tokens{};  // the prompt, then what was generated
  std::size_t prompt = 0, wanted = 0;
  std::size_t arrival = 0;  // step of the server
  std::size_t done = 0;     // tokens whose keys and values are in pages
  std::vector<std::int32_t> pages{}, swapped{};
  bool finished() const { return tokens.size() == prompt + wanted; }
};

// The next tokens of a request, `count` of them, in a step.
struct Part {
  Request* request;
  std::size_t count;
};

struct Copies {
  std::vector<std::int32_t> from{}, to{};
};

// What a step does, in this order. Parts of one token are in front.
struct Step {
  Copies in{}, out{};  // pages from the other pool, and to it
  std::vector<Part> parts{};
};

struct Limits {
  std::int32_t pages, swap_pages;
  std::size_t page_size, pages_of_one;  // at most so many pages of one request
  std::size_t rows, sequences;          // of a step
};

class Pages {
 public:
  explicit Pages(std::int32_t count) : owners_(static_cast<std::size_t>(count), 0) {
    for (std::int32_t page = count - 1; page >= 0; --page) free_.push_back(page);
  }
  std::optional<std::int32_t> take() {
    if (free_.empty()) return std::nullopt;
    const std::int32_t page = free_.back();
    free_.pop_back();
    share(page);
    return page;
  }
  void share(std::int32_t page) { ++owners_[static_cast<std::size_t>(page)]; }
  bool release(std::int32_t page) {  // whether nobody has it any more
    if (--owners_[static_cast<std::size_t>(page)] > 0) return false;
    free_.push_back(page);
    return true;
  }
  std::size_t free() const { return free_.size(); }
  std::size_t used() const { return owners_.size() - free_.size(); }

 private:
  std::vector<std::int32_t> owners_, free_;
};

class Scheduler {
 public:
  explicit Scheduler(const Limits& limits)
      : limits_(limits), pool_(limits.pages), swap_(limits.swap_pages) {}

  void add(Request& request) {
    const std::size_t most =
        std::min(limits_.pages_of_one, static_cast<std::size_t>(limits_.pages));
    if (pages_of(request.prompt + request.wanted) > most)
      throw std::invalid_argument("a request needs more pages than one may have");
    waiting_.push_back(&request);
  }
  bool idle() const { return waiting_.empty() && running_.empty(); }
  std::size_t pages_used() const { return pool_.used(); }
  std::size_t pages_swapped_out() const { return swapped_out_; }
  std::size_t requests_dropped() const { return dropped_; }
  std::size_t pages_shared() const { return shared_; }

  Step next() {
    Step step;
    admit(step.in);
    std::size_t left = limits_.rows;
    for (const bool decoding : {true, false}) {
      for (std::size_t n = 0; n < running_.size(); ++n) {
        if (left == 0 || step.parts.size() == limits_.sequences) return step;
        Request& request = *running_[n];
        if (request.pages.empty()) share_beginning(request);
        const std::size_t missing = request.tokens.size() - request.done;
        const std::size_t count = std::min(missing, left);
        if ((missing == 1) != decoding || !make_room(n, request.done + count, step)) continue;
        step.parts.push_back({&request, count});
        left -= count;
      }
    }
    return step;
  }

  // After a step: the tokens of its parts are in their pages, and some requests have one more.
  void settle(const Step& step) {
    for (const Part& part : step.parts) publish(*part.request);
    std::erase_if(running_, [&](Request* request) {
      if (request->finished()) release(*request);
      return request->finished();
    });
  }

 private:
  using Beginning = std::vector<int>;

  std::size_t pages_of(std::size_t tokens) const {
    return (tokens + limits_.page_size - 1) / limits_.page_size;
  }
  // What page `page` of a request depends on: its tokens and all in front of them.
  Beginning beginning(const Request& request, std::size_t page) const {
    const auto end = static_cast<std::ptrdiff_t>((page + 1) * limits_.page_size);
    return {request.tokens.begin(), request.tokens.begin() + end};
  }

  // As many as there are pages for, beside those that running requests still lack for the tokens
  // that they have.
  void admit(Copies& in) {
    std::size_t lacking = 0;
    for (const Request* request : running_)
      lacking += pages_of(request->tokens.size()) - request->pages.size();
    while (!waiting_.empty()) {
      Request& request = *waiting_.front();
      lacking += pages_of(request.tokens.size());
      if (lacking > pool_.free()) return;
      waiting_.pop_front();
      running_.push_back(&request);
      for (const std::int32_t page : request.swapped) {
        request.pages.push_back(pool_.take().value());
        in.from.push_back(page);
        in.to.push_back(request.pages.back());
        swap_.release(page);
      }
      lacking -= request.swapped.size();
      request.swapped.clear();
    }
  }

  // Leaves at least the last token, of which the next one follows.
  void share_beginning(Request& request) {
    while (request.done + limits_.page_size < request.tokens.size()) {
      const auto known = known_.find(beginning(request, request.pages.size()));
      if (known == known_.end()) return;
      pool_.share(known->second);
      request.pages.push_back(known->second);
      request.done += limits_.page_size;
      ++shared_;
    }
  }

  // Whole pages of prompts may be shared from now on.
  void publish(const Request& request) {
    const std::size_t whole = std::min(request.done, request.prompt) / limits_.page_size;
    for (std::size_t page = 0; page < whole; ++page)
      known_.emplace(beginning(request, page), request.pages[page]);
  }

  void release(Request& request) {
    for (const std::int32_t page : request.pages) {
      if (!pool_.release(page)) continue;
      std::erase_if(known_, [&](const auto& each) { return each.second == page; });
    }
    request.pages.clear();
  }

  // Pages for so many tokens of running request `n`. Those admitted after it give theirs, unless
  // they are in this step already.
  bool make_room(std::size_t n, std::size_t tokens, Step& step) {
    Request& request = *running_[n];
    while (request.pages.size() < pages_of(tokens)) {
      if (const auto page = pool_.take()) {
        request.pages.push_back(*page);
        continue;
      }
      const bool is_taken = std::ranges::any_of(
          step.parts, [&](const Part& part) { return part.request == running_.back(); });
      if (running_.size() == n + 1 || is_taken) return false;
      preempt(step.out);
    }
    return true;
  }

  void preempt(Copies& out) {
    Request& last = *running_.back();
    const std::size_t pages = pages_of(last.done);
    if (swap_.free() < pages) {
      last.done = 0;
      ++dropped_;
    } else {
      for (std::size_t page = 0; page < pages; ++page) {
        last.swapped.push_back(swap_.take().value());
        out.from.push_back(last.pages[page]);
        out.to.push_back(last.swapped.back());
      }
      swapped_out_ += pages;
    }
    release(last);
    running_.pop_back();
    waiting_.push_front(&last);
  }

  Limits limits_;
  Pages pool_, swap_;
  std::size_t swapped_out_ = 0, dropped_ = 0, shared_ = 0;
  std::deque<Request*> waiting_{};
  std::vector<Request*> running_{};  // in the order of admission
  std::map<Beginning, std::int32_t> known_{};
};
