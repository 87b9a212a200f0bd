# Turns the help of a ddprun program into a manual page. Variables: name (ddprun-bench), version.
function escaped(text) {
  gsub(/\\/, "\\e", text)
  gsub(/-/, "\\-", text)
  return text
}
function flush() {
  if (line != "") {
    # A description stands behind the names, from column 31 on, or if they are long, on the next line.
    if (about == "" && length(line) > 28) {
      about = substr(line, 29)
      line = substr(line, 1, 28)
    }
    sub(/ +$/, "", line)
    print ".TP\n.B " escaped(line)
    if (about != "") print escaped(about)
  }
  if (in_text) print ".fi"
  line = about = in_text = ""
}
NR == 1 {
  print ".TH " toupper(name) " 1 \"\" \"ddprun " version "\" \"User Commands\""
  print ".SH NAME\n" escaped(name) " \\- " escaped($0)
  next
}
/^$/ { next }
/^Usage: / { print ".SH SYNOPSIS\n.B " escaped(substr($0, 8)); next }
/^[A-Z][a-z ]*:$/ { flush(); section = substr($0, 1, length($0) - 1); print ".SH " toupper(section); next }
/^[^ ]/ && section != "NOTES" { flush(); section = "NOTES"; print ".SH NOTES" }
section != "NOTES" && /^  [^ ]/ { flush(); line = substr($0, 3); next }
section != "NOTES" { sub(/^ +/, ""); about = about (about == "" ? "" : " ") $0; next }
{
  if (!in_text) print ".nf"
  in_text = 1
  print "\\&" escaped($0)
}
END { flush() }
