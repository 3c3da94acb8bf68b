"""PynamoDB. Arguments: the endpoint."""

# mypy: ignore-errors
import sys
import time
import uuid

from pynamodb.attributes import JSONAttribute, NumberAttribute, UnicodeAttribute, UnicodeSetAttribute, VersionAttribute
from pynamodb.exceptions import DoesNotExist, PutError, UpdateError
from pynamodb.indexes import AllProjection, GlobalSecondaryIndex, LocalSecondaryIndex
from pynamodb.models import Model


class ByAuthor(GlobalSecondaryIndex):
    """Books by author."""

    class Meta:
        index_name = "by-author"
        projection = AllProjection()

    author = UnicodeAttribute(hash_key=True)
    year = NumberAttribute(range_key=True)


class ByYear(LocalSecondaryIndex):
    """A shelf's books by year."""

    class Meta:
        index_name = "by-year"
        projection = AllProjection()

    shelf = UnicodeAttribute(hash_key=True)
    year = NumberAttribute(range_key=True)


class Book(Model):
    """A book on a shelf."""

    class Meta:
        table_name = f"books-{uuid.uuid4().hex}"
        host = sys.argv[1]
        region = "us-east-1"
        aws_access_key_id = "any"
        aws_secret_access_key = "any"
        billing_mode = "PAY_PER_REQUEST"

    shelf = UnicodeAttribute(hash_key=True)
    title = UnicodeAttribute(range_key=True)
    author = UnicodeAttribute()
    year = NumberAttribute()
    topics = UnicodeSetAttribute(null=True)
    notes = JSONAttribute(null=True)
    version = VersionAttribute()
    by_author = ByAuthor()
    by_year = ByYear()


Book.create_table(wait=True)
assert Book.exists()
with Book.batch_write() as batch:
    for number in range(40):
        batch.save(Book("a", f"title {number:02}", author=f"author {number % 3}", year=1900 + number))
assert [book.title for book in Book.query("a", Book.title.startswith("title 1"))] == [f"title 1{n}" for n in range(10)]
assert [int(book.year) for book in Book.by_year.query("a", Book.year > 1935)] == [1936, 1937, 1938, 1939]
deadline = time.monotonic() + 10  # global indexes follow their table a moment later
while len(list(Book.by_author.query("author 1"))) < 13 and time.monotonic() < deadline:
    time.sleep(0.05)
assert [int(book.year) for book in Book.by_author.query("author 1", limit=2)] == [1901, 1904]

book = Book.get("a", "title 05", consistent_read=True)
book.topics, book.notes = {"x", "y"}, {"deep": [1, {"er": None}]}
book.save()
stale = Book.get("a", "title 05", consistent_read=True)
book.update(actions=[Book.year.add(100), Book.topics.delete({"x"})])
assert (book.year, book.topics, book.version) == (2005, {"y"}, 2)  # a batch sets no version
try:
    stale.save()
except PutError as error:
    refused = error.cause_response_code
else:
    raise AssertionError("a stale version was saved")
assert refused == "ConditionalCheckFailedException"
try:
    Book("a", "no such").update(actions=[Book.year.set(1)], condition=Book.title.exists())
except UpdateError:
    pass
else:
    raise AssertionError("a missing book was updated")
try:
    Book.get("a", "no such")
except DoesNotExist:
    pass
else:
    raise AssertionError("a missing book was found")
assert Book.count("a", filter_condition=Book.year < 1910) == 9
assert sum(1 for _ in Book.scan(page_size=7)) == 40
book.delete()
assert Book.count("a") == 39
Book.delete_table()
