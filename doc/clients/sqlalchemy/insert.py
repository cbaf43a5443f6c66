# Inserts rows with SQLAlchemy; their ids come from server_default, uuidv7_fast().

import uuid
from datetime import datetime, timedelta, timezone

from sqlalchemy import create_engine, func, select, text
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Base(DeclarativeBase):
    pass


class Item(Base):
    __tablename__ = "item"

    # Mapped[uuid.UUID] is the type Uuid.
    id: Mapped[uuid.UUID] = mapped_column(primary_key=True, server_default=text("uuidv7_fast()"))
    name: Mapped[str]


with Session(create_engine("postgresql+psycopg://")) as session:
    session.execute(text("CREATE EXTENSION IF NOT EXISTS fast_uuid"))
    Base.metadata.create_all(session.connection())

    for name in ("first", "second", "third"):
        item = Item(name=name)
        session.add(item)
        session.flush()
        id = item.id
        server_time = session.scalar(select(func.uuidv7_fast_timestamp(Item.id)).where(Item.id == id))

        # The first 48 bits are milliseconds. Python 3.14 and later: id.time
        time = EPOCH + timedelta(milliseconds=id.int >> 80)

        print(f"{id} version {id.version}, time {time}, server {server_time}, now {datetime.now(timezone.utc)}")

    session.commit()
