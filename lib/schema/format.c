/* SPDX-License-Identifier: Apache-2.0 */
#include "schema/format.h"

#include <arpa/inet.h>
#include <ctype.h>

#include "schema/format_internal.h"

#define NAME_MAX_BYTES 32
#define ADDRESS_MAX_BYTES 64
#define SHORT_NAME_MAX_BYTES 63
#define LONG_NAME_MAX_BYTES 253

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return isxdigit((unsigned char) c) && (unsigned char) c < 0x80;
}

static bool all(struct str s, bool (*is)(char c))
{
    for (size_t i = 0; i < s.n; i++)
        if (!is(s.p[i]))
            return false;
    return true;
}

/* The n digits from `at`, -1 when there are not so many. */
static int digits_at(struct str s, size_t at, size_t n)
{
    int value = 0;
    for (size_t i = at; i < at + n; i++) {
        if (i >= s.n || !is_digit(s.p[i]))
            return -1;
        value = value * 10 + (s.p[i] - '0');
    }
    return value;
}

/* ---- dates -------------------------------------------------------------------------------- */

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool is_date(struct str s)
{
    int year = digits_at(s, 0, 4), month = digits_at(s, 5, 2), day = digits_at(s, 8, 2);
    if (s.n != 10 || s.p[4] != '-' || s.p[7] != '-' || year < 0 || month < 1 || month > 12)
        return false;
    return day >= 1 && day <= days_in_month(year, month);
}

static bool is_zone(struct str s)
{
    if (s.n == 1)
        return (s.p[0] | 0x20) == 'z';
    return s.n == 6 && (s.p[0] == '+' || s.p[0] == '-') && digits_at(s, 1, 2) >= 0 &&
           s.p[3] == ':' && digits_at(s, 4, 2) >= 0;
}

static bool is_date_time(struct str s)
{
    if (s.n < 20 || (s.p[10] | 0x20) != 't' || !is_date(str_sub(s, 0, 10)))
        return false;
    struct str t = str_from(s, 11);
    int hour = digits_at(t, 0, 2), minute = digits_at(t, 3, 2), second = digits_at(t, 6, 2);
    if (t.p[2] != ':' || t.p[5] != ':' || hour < 0 || hour > 23 || minute < 0 || minute > 59 ||
        second < 0 || second > 59)
        return false;
    struct str rest = str_from(t, 8);
    if (is_zone(rest))
        return true;
    /* Any one character opens the fraction: so has it kube-apiserver's expression. */
    size_t n = 1;
    while (n < rest.n && is_digit(rest.p[n]))
        n++;
    return n > 1 && is_zone(str_from(rest, n));
}

/* ---- addresses ---------------------------------------------------------------------------- */

/* AF_INET, AF_INET6 or 0, as net.ParseIP would have it. */
static int address_family(struct str s)
{
    char text[ADDRESS_MAX_BYTES];
    unsigned char address[16];
    if (s.n >= sizeof(text) || memchr(s.p, '\0', s.n))
        return 0;
    memcpy(text, s.p, s.n);
    text[s.n] = '\0';
    int family = str_find(s, ':') >= 0 ? AF_INET6 : AF_INET;
    return inet_pton(family, text, address) == 1 ? family : 0;
}

static bool is_ipv4(struct str s)
{
    return s.n && str_find(s, '.') >= 0 && address_family(s);
}

static bool is_ipv6(struct str s)
{
    return s.n && str_find(s, ':') >= 0 && address_family(s);
}

static bool is_cidr(struct str s)
{
    ptrdiff_t slash = str_find(s, '/');
    if (slash <= 0)
        return false;
    int family = address_family(str_sub(s, 0, (size_t) slash));
    struct str mask = str_from(s, (size_t) slash + 1);
    int64_t bits = 0;
    if (!family || !mask.n || !all(mask, is_digit) || str_to_i64(mask, &bits) < 0)
        return false;
    return bits <= (family == AF_INET6 ? 128 : 32);
}

/* Groups of `width` hexadecimal digits between separators. */
static bool is_hex_groups(struct str s, size_t width, char separator)
{
    for (size_t i = 0; i < s.n; i++) {
        bool between = i % (width + 1) == width;
        if (between ? s.p[i] != separator : !is_hex(s.p[i]))
            return false;
    }
    return true;
}

static bool is_mac(struct str s)
{
    if (s.n < 14)
        return false;
    if (s.p[2] == ':' || s.p[2] == '-')
        return (s.n == 17 || s.n == 23 || s.n == 59) && is_hex_groups(s, 2, s.p[2]);
    return (s.n == 14 || s.n == 19 || s.n == 49) && is_hex_groups(s, 4, '.');
}

/* ---- identifiers -------------------------------------------------------------------------- */

/* The 32 digits of a UUID; dashes may be left out, each on its own. */
static bool read_uuid(struct str s, char digits[32])
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        bool boundary = n == 8 || n == 12 || n == 16 || n == 20;
        if (s.p[i] == '-' && boundary && s.p[i - 1] != '-')
            continue;
        if (n == 32 || !is_hex(s.p[i]))
            return false;
        digits[n++] = (char) (s.p[i] | 0x20);
    }
    return n == 32 && s.p[s.n - 1] != '-';
}

static bool is_uuid(struct str s)
{
    char digits[32];
    return read_uuid(s, digits);
}

static bool is_uuid3(struct str s)
{
    char digits[32];
    return read_uuid(s, digits) && digits[12] == '3';
}

static bool is_uuid_variant(struct str s, char version)
{
    char digits[32];
    return read_uuid(s, digits) && digits[12] == version && strchr("89ab", digits[16]);
}

static bool is_uuid4(struct str s)
{
    return is_uuid_variant(s, '4');
}

static bool is_uuid5(struct str s)
{
    return is_uuid_variant(s, '5');
}

static bool is_object_id(struct str s)
{
    return s.n == 24 && all(s, is_hex);
}

static bool is_label_char(char c)
{
    return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-';
}

static bool is_short_name(struct str s)
{
    return s.n && s.n <= SHORT_NAME_MAX_BYTES && all(s, is_label_char) && s.p[0] != '-' &&
           s.p[s.n - 1] != '-';
}

static bool is_long_name(struct str s)
{
    if (!s.n || s.n > LONG_NAME_MAX_BYTES || s.p[s.n - 1] == '.')
        return false;
    for (struct str rest = s, part; str_split(&rest, '.', &part);)
        if (!part.n || !all(part, is_label_char) || part.p[0] == '-' || part.p[part.n - 1] == '-')
            return false;
    return true;
}

/* ---- numbers of people and things --------------------------------------------------------- */

/* Copies the digits (and an X) of s without blanks and dashes; -1 when something else is in it. */
static int isbn_digits(struct str s, char digits[13])
{
    int n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c == ' ' || c == '-' || (c >= '\t' && c <= '\r'))
            continue;
        if (n == 13 || (!is_digit(c) && c != 'X'))
            return -1;
        digits[n++] = c;
    }
    return n;
}

static bool is_isbn10(struct str s)
{
    char digits[13];
    if (isbn_digits(s, digits) != 10)
        return false;
    int sum = 0;
    for (int i = 0; i < 10; i++) {
        if (digits[i] == 'X' && i != 9)
            return false;
        sum += (i + 1) * (digits[i] == 'X' ? 10 : digits[i] - '0');
    }
    return sum % 11 == 0;
}

static bool is_isbn13(struct str s)
{
    char digits[13];
    if (isbn_digits(s, digits) != 13)
        return false;
    int sum = 0;
    for (int i = 0; i < 13; i++) {
        if (digits[i] == 'X')
            return false;
        sum += (i % 2 ? 3 : 1) * (digits[i] - '0');
    }
    return sum % 10 == 0;
}

static bool is_isbn(struct str s)
{
    return is_isbn10(s) || is_isbn13(s);
}

static bool is_card_issuer(const char *d, size_t n)
{
    int two = (d[0] - '0') * 10 + (d[1] - '0');
    int three = two * 10 + (d[2] - '0'), four = three * 10 + (d[3] - '0');
    if (d[0] == '4')
        return n == 13 || n == 16;
    if (two >= 51 && two <= 55)
        return n == 16;
    if (four == 6011 || two == 65)
        return n == 16;
    if (two == 34 || two == 37)
        return n == 15;
    if ((three >= 300 && three <= 305) || two == 36 || two == 38)
        return n == 14;
    if (four == 2131 || four == 1800)
        return n == 15;
    return two == 35 && n == 16;
}

static bool is_credit_card(struct str s)
{
    char digits[16];
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (!is_digit(s.p[i]))
            continue;
        if (n == sizeof(digits))
            return false;
        digits[n++] = s.p[i];
    }
    if (n < 13 || !is_card_issuer(digits, n))
        return false;
    int sum = 0;
    for (size_t i = 0; i < n; i++) {
        int d = digits[n - 1 - i] - '0';
        d = i % 2 ? d * 2 : d;
        sum += d > 9 ? d - 9 : d;
    }
    return sum % 10 == 0;
}

static bool is_gap(char c)
{
    return c == '-' || c == ' ';
}

static bool is_ssn(struct str s)
{
    return s.n == 11 && digits_at(s, 0, 3) >= 0 && is_gap(s.p[3]) && digits_at(s, 4, 2) >= 0 &&
           is_gap(s.p[6]) && digits_at(s, 7, 4) >= 0;
}

static bool is_hex_color(struct str s)
{
    struct str digits = str_starts_with(s, STR("#")) ? str_from(s, 1) : s;
    return (digits.n == 3 || digits.n == 6) && all(digits, is_hex);
}

static bool is_rgb_color(struct str s)
{
    if (!str_starts_with(s, STR("rgb(")) || !str_ends_with(s, STR(")")))
        return false;
    int n = 0;
    struct str rest = str_sub(s, 4, s.n - 1);
    for (struct str part; str_split(&rest, ',', &part); n++) {
        part = str_trim(part);
        int value = digits_at(part, 0, part.n <= 3 ? part.n : 4);
        if (!part.n || value < 0 || value > 255 || (part.n > 1 && part.p[0] == '0'))
            return false;
    }
    return n == 3 && s.p[s.n - 2] != ',';
}

static bool is_base64_char(char c)
{
    return isalnum((unsigned char) c) || c == '+' || c == '/';
}

static bool is_base64(struct str s)
{
    if (!s.n || s.n % 4)
        return false;
    size_t padding = s.p[s.n - 1] != '=' ? 0 : s.p[s.n - 2] != '=' ? 1 : 2;
    return all(str_sub(s, 0, s.n - padding), is_base64_char);
}

static bool is_anything(struct str s)
{
    (void) s;
    return true;
}

/* ---- the table ---------------------------------------------------------------------------- */

static const struct format formats[] = {
    {"bsonobjectid", is_object_id},
    {"byte", is_base64},
    {"cidr", is_cidr},
    {"creditcard", is_credit_card},
    {"date", is_date},
    {"datetime", is_date_time},
    {"duration", format_is_duration},
    {"email", format_is_email},
    {"hexcolor", is_hex_color},
    {"hostname", format_is_hostname},
    {"ipv4", is_ipv4},
    {"ipv6", is_ipv6},
    {"isbn", is_isbn},
    {"isbn10", is_isbn10},
    {"isbn13", is_isbn13},
    {"k8slongname", is_long_name},
    {"k8sshortname", is_short_name},
    {"mac", is_mac},
    {"password", is_anything},
    {"rgbcolor", is_rgb_color},
    {"ssn", is_ssn},
    {"uri", format_is_uri},
    {"uuid", is_uuid},
    {"uuid3", is_uuid3},
    {"uuid4", is_uuid4},
    {"uuid5", is_uuid5},
};

const struct format *format_find(struct str name)
{
    char plain[NAME_MAX_BYTES];
    size_t n = 0;
    for (size_t i = 0; i < name.n; i++) {
        if (name.p[i] == '-')
            continue;
        if (n == sizeof(plain))
            return NULL;
        plain[n++] = name.p[i];
    }
    for (size_t i = 0; i < N_ELEMENTS(formats); i++)
        if (str_is(str_range(plain, n), formats[i].name))
            return &formats[i];
    return NULL;
}
