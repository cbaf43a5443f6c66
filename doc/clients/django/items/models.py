from django.db import models


class Item(models.Model):
    id = models.UUIDField(
        primary_key=True, editable=False, db_default=models.Func(function="uuidv7_fast")
    )
    name = models.TextField()
