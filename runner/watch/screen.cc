// SPDX-License-Identifier: Apache-2.0
#include "watch/screen.h"

#include <langinfo.h>
#include <locale.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <wchar.h>

#include <algorithm>
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "base/sys.h"
#include "codec/data/embedded_file.h"
#include "codec/text/neutral.h"
#include "report/terminal/request_lines.h"
#include "watch/lines.h"
#include "watch/rows.h"

// Last: it defines common words as macros.
#define NCURSES_NOMACROS 1
#include <curses.h>

namespace watch {

std::span<const codec::EmbeddedFile> EmbeddedTerminals();

namespace {

using std::chrono::milliseconds;

constexpr int kEscapeDelay = 25;  // Milliseconds that ncurses waits for the rest of a key.
constexpr int kLeaveKeys[] = {'q', 'Q', 3};  // And Ctrl-C.
constexpr int kRedrawKey = 12;               // Ctrl-L
constexpr int kBarColumns = 20;
constexpr short kRed = 1;
constexpr short kGreen = 2;
constexpr short kYellow = 3;

// The descriptions that the binary carries, before the host's: images often have none. A TERMINFO
// of the user's own is left alone.
void OfferTerminals(const std::string& kind) {
  if (sys::Environment("TERMINFO")) return;
  for (const codec::EmbeddedFile& file : EmbeddedTerminals()) {
    if (!file.path.ends_with("/" + kind)) continue;
    (void)::setenv("TERMINFO", std::string(file.text).c_str(), 1);
  }
}

volatile sig_atomic_t came = 0;

// Interrupts the wait for a key. For good: this process has nothing else to do.
void CatchSignals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { came = signal; };
  for (int signal : {SIGINT, SIGTERM, SIGHUP}) (void)::sigaction(signal, &action, nullptr);
}

// Returns true if characters beyond ASCII can be shown, and their columns counted.
bool HasUtf8() {
  for (const char* name : {"", "C.UTF-8"}) {
    if (::setlocale(LC_CTYPE, name) == nullptr) continue;
    if (::strcmp(::nl_langinfo(CODESET), "UTF-8") == 0) return true;
    bool chosen =
        sys::Environment("LC_ALL") || sys::Environment("LC_CTYPE") || sys::Environment("LANG");
    if (chosen) break;
  }
  (void)::setlocale(LC_CTYPE, "C");
  return false;
}

}  // namespace

class Screen::Content {
 public:
  Content(std::string title, SCREEN* screen, bool utf8)
      : title_(std::move(title)), screen_(screen), utf8_(utf8) {
    ::raw();
    ::noecho();
    ::keypad(stdscr, TRUE);
    ::set_escdelay(kEscapeDelay);
    (void)::curs_set(0);
    coloured_ = ::has_colors() && !sys::Environment("NO_COLOR");
    if (!coloured_) return;
    ::start_color();
    ::use_default_colors();
    ::init_pair(kRed, COLOR_RED, -1);
    ::init_pair(kGreen, COLOR_GREEN, -1);
    ::init_pair(kYellow, COLOR_YELLOW, -1);
  }
  ~Content() {
    ::endwin();
    ::delscreen(screen_);
  }
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  void Take(Look look) {
    if (look.requests) TakeRequests(*look.requests);
    if (look.state) state_ = std::move(look.state);
    for (const session::FileChange& change : look.files.changes) files_.Note(change);
    rows_[kFiles].Set(files_.Render(look.files.complete));
  }

  bool Serve(milliseconds rest) {
    Deadline until = Deadline::After(rest);
    for (;;) {
      Draw();
      ::timeout(until.poll_ms());
      int key = ::getch();
      if (came != 0) return false;
      if (key == ERR && until.passed()) return true;
      if (key == ERR && ::isatty(STDIN_FILENO) == 0) return false;  // The terminal is gone.
      if (std::find(std::begin(kLeaveKeys), std::end(kLeaveKeys), key) != std::end(kLeaveKeys)) {
        return false;
      }
      Follow(key);
    }
  }

 private:
  using Outcome = Rows::Outcome;
  enum List : size_t { kRequests, kFiles, kLists };

  void TakeRequests(const report::DenialList& list) {
    std::vector<report::RequestEntry> keys = report::RenderRequests(list, false);
    std::vector<report::RequestEntry> texts = report::RenderRequests(list, true);
    std::vector<Rows::Entry> entries;
    for (size_t i = 0; i < texts.size(); ++i) {
      entries.push_back({std::move(keys[i].text), std::move(texts[i].text), texts[i].outcome});
    }
    // Those that a person has to decide about come first.
    std::stable_partition(entries.begin(), entries.end(), [](const Rows::Entry& entry) {
      return entry.outcome == Outcome::kDenied;
    });
    rows_[kRequests].Set(std::move(entries));
    counts_ = {list.denials.size() + static_cast<size_t>(list.dropped),
               list.allowed.size() + static_cast<size_t>(list.allowed_dropped),
               list.failures.size()};
  }

  void Follow(int key) {
    Rows& rows = rows_[shown_];
    switch (key) {
      case '\t':
      case KEY_BTAB:
      case KEY_LEFT:
      case KEY_RIGHT:
        shown_ = shown_ == kRequests ? kFiles : kRequests;
        break;
      case KEY_DOWN:
      case 'j':
        return rows.Move(1);
      case KEY_UP:
      case 'k':
        return rows.Move(-1);
      case KEY_NPAGE:
      case ' ':
        return rows.Move(std::max(list_rows_ - 1, 1));
      case KEY_PPAGE:
        return rows.Move(-std::max(list_rows_ - 1, 1));
      case KEY_HOME:
        return rows.MoveToFirst();
      case KEY_END:
        return rows.MoveToLast();
      case kRedrawKey:
        ::clearok(stdscr, TRUE);
        break;
      default:  // KEY_RESIZE: everything is drawn anew anyway.
        break;
    }
  }

  void Draw() {
    ::erase();
    int row = 0;
    ::attron(A_REVERSE);
    Bar(row++, " agentic-ci watch  " + title_ + TimeLeft());
    ::attroff(A_REVERSE);
    row = DrawLimits(row);
    DrawTabs(row++);
    std::vector<std::wstring> detail = Detail();
    int bottom = LINES - 1 - static_cast<int>(detail.size());
    list_rows_ = std::max(bottom - row, 0);
    DrawList(row, list_rows_);
    for (const std::wstring& piece : detail) {
      ::mvaddnwstr(bottom++, 0, piece.c_str(), static_cast<int>(piece.size()));
    }
    ::attron(A_REVERSE);
    Bar(LINES - 1,
        " Tab the other list   Up Down PgUp PgDn Home End   q leave (what is watched goes on)");
    ::attroff(A_REVERSE);
    ::refresh();
  }

  // All of the selected entry, in a quarter of the screen.
  std::vector<std::wstring> Detail() const {
    std::vector<std::wstring> pieces;
    for (const std::string& line : rows_[shown_].Selected()) {
      for (std::wstring& piece : Wrap(line, COLS)) pieces.push_back(std::move(piece));
    }
    pieces.resize(std::min(pieces.size(), static_cast<size_t>(LINES) / 4));
    return pieces;
  }

  std::string TimeLeft() const {
    if (!state_) return {};
    return "   " + std::string(state_->busy ? "busy" : "idle") + "   " +
           std::to_string(state_->seconds_left) + " s left";
  }

  int DrawLimits(int row) {
    if (!state_) return row;
    for (const session::LimitUse& use : state_->limits) {
      if (use.used < 0 || row + 4 > LINES) continue;
      double part =
          use.most > 0 ? static_cast<double>(use.used) / static_cast<double>(use.most) : 0;
      int filled = std::clamp(static_cast<int>(part * kBarColumns), 0, kBarColumns);
      Paint(part >= 0.9   ? kRed
            : part >= 0.5 ? kYellow
                          : kGreen,
            [&] {
              Put(row, 1,
                  std::string(static_cast<size_t>(filled), '#') +
                      std::string(static_cast<size_t>(kBarColumns - filled), '.'));
            });
      Put(row++, kBarColumns + 2, RenderLimit(use));
    }
    return row;
  }

  void DrawTabs(int row) {
    std::string requests = " Requests: " + std::to_string(counts_[0]) + " refused, " +
                           std::to_string(counts_[1]) + " allowed, " + std::to_string(counts_[2]) +
                           " failed ";
    std::string files = " Files: " + std::to_string(files_.size()) + " ";
    int column = 0;
    for (size_t list : {kRequests, kFiles}) {
      const std::string& text = list == kRequests ? requests : files;
      ::attron(list == shown_ ? A_BOLD | A_UNDERLINE : A_DIM);
      Put(row, column, text);
      ::attroff(A_BOLD | A_UNDERLINE | A_DIM);
      column += static_cast<int>(text.size()) + 1;
    }
  }

  void DrawList(int row, int height) {
    Rows& rows = rows_[shown_];
    for (const Rows::Row& one : rows.Visible(height)) {
      short colour = one.outcome == Outcome::kDenied    ? kRed
                     : one.outcome == Outcome::kAllowed ? kGreen
                     : one.outcome == Outcome::kFailed  ? kYellow
                                                        : short{0};
      Put(row, 0, one.selected ? ">" : " ");
      if (one.selected) ::attron(A_BOLD);
      Paint(colour, [&] { Put(row, 2, one.text); });
      ::attroff(A_BOLD);
      ++row;
    }
  }

  template <typename Draws>
  void Paint(short colour, const Draws& draws) {
    bool paints = coloured_ && colour != 0;
    if (paints) ::attron(COLOR_PAIR(colour));
    draws();
    if (paints) ::attroff(COLOR_PAIR(colour));
  }

  // Over the whole width.
  void Bar(int row, std::string text) {
    text.resize(std::max<size_t>(text.size(), static_cast<size_t>(COLS)), ' ');
    Put(row, 0, text);
  }

  // Harmless text, cut at the right edge. The last column of the last row stays empty: to write it
  // would scroll some terminals.
  void Put(int row, int column, const std::string& text) {
    int room = COLS - column - (row == LINES - 1 ? 1 : 0);
    if (row < 0 || row >= LINES || room <= 0) return;
    std::vector<std::wstring> pieces = Wrap(text, room);
    if (pieces.empty()) return;
    ::mvaddnwstr(row, column, pieces[0].c_str(), static_cast<int>(pieces[0].size()));
  }

  // Pieces of at most `columns` each.
  std::vector<std::wstring> Wrap(const std::string& text, int columns) const {
    std::vector<std::wstring> pieces;
    int room = 0;
    for (wchar_t c : Widen(text)) {
      int width = std::max(::wcwidth(c), 0);
      if (pieces.empty() || width > room) {
        pieces.emplace_back();
        room = columns;
      }
      pieces.back() += c;
      room -= width;
    }
    return pieces;
  }

  std::wstring Widen(const std::string& text) const {
    std::wstring wide(text.size() + 1, L'\0');
    size_t count = utf8_ ? ::mbstowcs(wide.data(), text.c_str(), wide.size()) : wide.size();
    if (count < wide.size()) {
      wide.resize(count);
      return wide;
    }
    wide.clear();
    for (unsigned char c : text) wide += c < 0x80 ? static_cast<wchar_t>(c) : L'?';
    return wide;
  }

  std::string title_;
  SCREEN* screen_;
  bool utf8_;
  bool coloured_ = false;
  std::optional<session::SandboxState> state_;
  std::array<size_t, 3> counts_{};  // The counts of requests: refused, allowed, failed.
  FileList files_;
  std::array<Rows, kLists> rows_;
  List shown_ = kRequests;
  int list_rows_ = 0;
};

Screen::Screen(std::unique_ptr<Content> content) : content_(std::move(content)) {}
Screen::~Screen() = default;

std::unique_ptr<Screen> Screen::Open(const std::string& title) {
  std::string kind = sys::Environment("TERM").value_or("");
  bool terminal = ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (!terminal || kind.empty() || kind == "dumb") return nullptr;
  OfferTerminals(kind);
  bool utf8 = HasUtf8();
  CatchSignals();
  SCREEN* screen = ::newterm(kind.c_str(), stdout, stdin);
  if (screen == nullptr) return nullptr;
  return std::unique_ptr<Screen>(
      new Screen(std::make_unique<Content>(codec::NeutralLine(title), screen, utf8)));
}

void Screen::Take(Look look) { content_->Take(std::move(look)); }
bool Screen::Serve(milliseconds rest) { return content_->Serve(rest); }
int Screen::signal() { return came; }

}  // namespace watch
